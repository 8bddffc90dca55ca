// Internal: level-1 loops over contiguous vectors, compiled for each instruction set.
#pragma once

#include <complex>
#include <cstdint>

namespace cuop::kernels {

template <class T>
struct Level1 {
  void (*scal)(int64_t count, T alpha, const T* x, T* out);
  void (*axpy)(int64_t count, T alpha, const T* x, const T* y, T* out);
  /// Sum of x[i] * y[i], or of conj(x[i]) * y[i], accumulated in double.
  std::complex<double> (*dot)(int64_t count, const T* x, const T* y, bool conjugate);
};

struct Level1Kernels {
  Level1<float> s;
  Level1<double> d;
  Level1<std::complex<float>> c;
  Level1<std::complex<double>> z;
};
template <class Level>
const Level1Kernels& level1_kernels();

/// The table for T at the instruction set in use.
template <class T>
const Level1<T>& level1();

}  // namespace cuop::kernels
