// Element-wise loops over complex lines, compiled for each instruction set.
#pragma once

#include <complex>
#include <cstdint>

#include "cuop/backend/cpu/isa.h"

namespace cuop::spectral {

template <class Real>
struct ComplexLoops {
  using Complex = std::complex<Real>;
  /// out[i] = a[i] b[i], by the plain formula (infinities may give NaN); out may be a.
  void (*multiply)(const Complex* a, const Complex* b, int64_t count, Complex* out);
  /// out[i] = x[i] b[i] for real x.
  void (*multiply_real)(const Real* x, const Complex* b, int64_t count, Complex* out);
};
template <class Level, class Real>
const ComplexLoops<Real>& complex_loops();

/// The loops of the instruction set in use.
template <class Real>
const ComplexLoops<Real>& complex_loops_in_use() {
  static const ComplexLoops<Real>& chosen = isa::choose(
      []<class Level>(Level) -> const ComplexLoops<Real>& { return complex_loops<Level, Real>(); });
  return chosen;
}

}  // namespace cuop::spectral
