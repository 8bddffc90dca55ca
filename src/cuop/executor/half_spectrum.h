// Where the rows of a spectrum, seen as a matrix, lie in its first half.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/box.h"
#include "cuop/core/tensor.h"

namespace cuop::executor {

/// The spectrum X of n = n1 n2 real numbers as a matrix, [k1, k2] being X[k1 + n1 k2], of which the
/// first n1 / 2 + 1 rows are looked at. Its first half, X[0 .. n/2], has runs of n1 elements, the
/// last one begun only; elements behind it are conjugates, X[n - k] = conj(X[k]), and those of
/// [k1, k2] are [n1 - k1, n2 - 1 - k2].
class HalfSpectrum {
 public:
  HalfSpectrum(int64_t n1, int64_t n2)
      : n1_(n1), n2_(n2), runs_((n1 * n2 / 2 + 1) / n1), rest_((n1 * n2 / 2 + 1) % n1) {}

  int64_t length() const { return n1_ * n2_ / 2 + 1; }
  /// Whole runs, and elements of the begun one.
  int64_t runs() const { return runs_; }
  int64_t rest() const { return rest_; }
  /// The columns of the runs in which the conjugates of these rows are; of row 0 alone, which has
  /// its own, the last one.
  Interval mirrored(Interval rows) const;

  /// What rows are made of, or go into.
  struct Parts {
    Tensor direct;    ///< [runs, rows]: their columns of the runs
    Tensor mirrored;  ///< [runs, ..]: the columns `mirrored`
    Tensor begun;     ///< [rest] or more, the elements of the begun run
  };
  /// Those of half a spectrum that lies whole, as views.
  Parts parts_of(const Tensor& half, Interval rows) const;
  /// The rows `at` become the spectrum's. `rows` is complex.
  void gather(const Parts& half, Interval at, const Tensor& rows) const;
  /// The half, on any device, gets what the rows `at` have of it, some of which become their
  /// conjugates.
  void scatter(const Parts& half, Interval at, const Tensor& rows) const;

 private:
  struct Pair {
    Tensor half, rows;  ///< as large as each other
    bool is_mirrored;   ///< each is the conjugate of the other backwards
  };
  /// Conjugates of the rows `other` alone, behind the others, whose elements may be among theirs.
  std::vector<Pair> pairs(const Parts& half, Interval at, Interval other, const Tensor& rows) const;
  /// Where the conjugates of rows from 1 on are.
  Interval opposite(Interval rows) const { return {n1_ - rows.high + 1, n1_ - rows.low + 1}; }

  int64_t n1_, n2_;
  int64_t runs_, rest_;
};

}  // namespace cuop::executor
