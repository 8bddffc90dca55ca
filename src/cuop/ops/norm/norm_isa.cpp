#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/norm/norm_kernels.h"

namespace cuop::kernels {
namespace {

template <class T>
void elements(const T* x, T* y, int64_t n, double mean, double scale, const T* gamma,
              const T* beta) {
  const T factor = static_cast<T>(scale);
  if (beta == nullptr) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(static_cast<double>(x[i]) - mean) * factor * gamma[i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(static_cast<double>(x[i]) - mean) * factor * gamma[i] + beta[i];
    }
  }
}

template <class T>
void constant(const T* x, T* y, int64_t n, double mean, double scale, double shift) {
  const T factor = static_cast<T>(scale), offset = static_cast<T>(shift);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<double>(x[i]) - mean) * factor + offset;
  }
}

template <class T>
void columns(const T* x, T* y, int64_t n, const double* mean, const double* scale,
             const double* shift) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>((static_cast<double>(x[i]) - mean[i]) * scale[i] + shift[i]);
  }
}

}  // namespace

template <class Level, class T>
const NormLoops<T>& norm_loops() {
  static constexpr NormLoops<T> kLoops{elements<T>, constant<T>, columns<T>};
  return kLoops;
}
template const NormLoops<float>& norm_loops<isa::CUOP_ISA, float>();
template const NormLoops<double>& norm_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::kernels
