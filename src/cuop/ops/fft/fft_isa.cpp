#include "cuop/ops/fft/fft_kernels.h"

namespace cuop::spectral {

namespace {

// std::complex is an array of two reals; on those the loops vectorise, on the class they do not.
template <class Real>
void multiply(const std::complex<Real>* a, const std::complex<Real>* b, int64_t count,
              std::complex<Real>* out) {
  const Real* x = reinterpret_cast<const Real*>(a);
  const Real* y = reinterpret_cast<const Real*>(b);
  Real* z = reinterpret_cast<Real*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const Real re = x[2 * i] * y[2 * i] - x[2 * i + 1] * y[2 * i + 1];
    const Real im = x[2 * i] * y[2 * i + 1] + x[2 * i + 1] * y[2 * i];
    z[2 * i] = re;
    z[2 * i + 1] = im;
  }
}

template <class Real>
void multiply_real(const Real* x, const std::complex<Real>* b, int64_t count,
                   std::complex<Real>* out) {
  const Real* y = reinterpret_cast<const Real*>(b);
  Real* z = reinterpret_cast<Real*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    z[2 * i] = x[i] * y[2 * i];
    z[2 * i + 1] = x[i] * y[2 * i + 1];
  }
}

}  // namespace

template <class Level, class Real>
const ComplexLoops<Real>& complex_loops() {
  static constexpr ComplexLoops<Real> kLoops{&multiply<Real>, &multiply_real<Real>};
  return kLoops;
}
template const ComplexLoops<float>& complex_loops<isa::CUOP_ISA, float>();
template const ComplexLoops<double>& complex_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::spectral
