// Internal: roots of unity of any order, from a table of some 3 sqrt(n).
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop::spectral {

/// exp(2 pi i m / n) for 0 <= m < n < 2^60, to about one unit in the last place.
std::complex<double> root_of_unity(int64_t m, int64_t n);

/// exp(-pi i k / 2 n) for k = 0 ... n / 2.
std::vector<std::complex<double>> quarter_turns(int64_t n);

/// All n roots exp(-2 pi i m / n), or their conjugates, as products: about sqrt(n) of them far
/// apart, followed by as many neighbours.
class RootTable {
 public:
  using Root = std::complex<double>;

  RootTable(int64_t n, bool is_conjugate, Device device);

  /// Of the device.
  static int64_t bytes(int64_t n);

  /// Where they lie, for loops and kernels.
  struct Places {
    const Root* coarse;
    const Root* fine;
    int shift;

    /// On the host, of 0 <= m < n.
    Root at(int64_t m) const {
      const Root a = coarse[m >> shift], b = fine[m & ((int64_t{1} << shift) - 1)];
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    }
  };
  Places places() const {
    const Root* const coarse = roots_.data<Root>();
    return {coarse, coarse + size_.coarse_count, size_.shift};
  }

 private:
  struct Size {
    explicit Size(int64_t n);
    int64_t count() const { return coarse_count + (int64_t{1} << shift); }
    int shift = 0;
    int64_t coarse_count = 0;
  };

  Size size_;
  Tensor roots_;  // complex128, on the device
};

}  // namespace cuop::spectral
