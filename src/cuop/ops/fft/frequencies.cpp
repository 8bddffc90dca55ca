#include <vector>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/arrange.h"

namespace cuop {

namespace {

/// k / (n d) for k = 0, 1, ..., `positive`-1 and then -n/2, ..., -1 until `count` are there.
Tensor frequencies(const char* who, int64_t n, double d, int64_t count, int64_t positive,
                   Device device) {
  if (n < 1) throw ShapeError(cat(who, ": n is ", n, ", at least 1 is needed"));
  if (d == 0.0) throw ExecutionError(cat(who, ": the sample spacing d must not be 0"));
  const Tensor result = empty({count}, DType::kFloat64);
  auto* values = result.data<double>();
  const double unit = 1.0 / (static_cast<double>(n) * d);
  for (int64_t k = 0; k < count; ++k) {
    values[k] = static_cast<double>(k < positive ? k : k - n) * unit;
  }
  return to_device(result, device);
}

Tensor shift(const char* who, const Tensor& x, const FftDims& axes, bool is_inverse) {
  std::vector<int> chosen;
  if (!axes) {
    chosen = normalize_axes({}, x.ndim(), who);
  } else if (!axes->empty()) {
    chosen = normalize_axes({axes->begin(), axes->end()}, x.ndim(), who);
  }
  if (chosen.empty()) return clone(x);
  std::vector<int64_t> shifts, along;
  for (int axis : chosen) {
    const int64_t half = x.shape(axis) / 2;
    shifts.push_back(is_inverse ? -half : half);
    along.push_back(axis);
  }
  return roll(x, shifts, along);
}

}  // namespace

Tensor fftfreq(int64_t n, double d, Device device) {
  return frequencies("fftfreq", n, d, n, (n + 1) / 2, device);
}
Tensor rfftfreq(int64_t n, double d, Device device) {
  return frequencies("rfftfreq", n, d, n / 2 + 1, n / 2 + 1, device);
}
Tensor fftshift(const Tensor& x, const FftDims& axes) { return shift("fftshift", x, axes, false); }
Tensor ifftshift(const Tensor& x, const FftDims& axes) { return shift("ifftshift", x, axes, true); }

}  // namespace cuop
