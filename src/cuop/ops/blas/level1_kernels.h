// Internal: level-1 loops over contiguous vectors, compiled for each instruction set.
#pragma once

#include <complex>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace cuop::kernels {

template <class T>
struct Level1 {
  /// Integers are unsigned here: sums and products modulo 2^n are those of the signed ones.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, std::complex<double>>;

  void (*scal)(int64_t count, T alpha, const T* x, T* out);
  void (*axpy)(int64_t count, T alpha, const T* x, const T* y, T* out);
  /// Sum of x[i] * y[i], or of conj(x[i]) * y[i], accumulated in double; of integers, the bits
  /// that T has are right.
  Sum (*dot)(int64_t count, const T* x, const T* y, bool conjugate);
};

using Level1Kernels =
    std::tuple<Level1<uint8_t>, Level1<uint16_t>, Level1<uint32_t>, Level1<uint64_t>, Level1<float>,
               Level1<double>, Level1<std::complex<float>>, Level1<std::complex<double>>>;
template <class Level>
const Level1Kernels& level1_kernels();

}  // namespace cuop::kernels
