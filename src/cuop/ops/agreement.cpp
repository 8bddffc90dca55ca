#include "cuop/ops/agreement.h"

#include <cmath>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"

namespace cuop {

namespace {

/// Of the largest element: sums in another order differ by that much.
double tolerance(DType dtype) {
  if (dtype == DType::kBFloat16) return 5e-2;
  if (dtype == DType::kFloat16) return 1e-2;
  return itemsize(real_dtype(dtype)) == 4 ? 1e-3 : 1e-9;
}

/// The real numbers that a floating or complex tensor is made of, in float64 in host memory.
struct Numbers {
  explicit Numbers(const Tensor& t)
      : is_complex(cuop::is_complex(t.dtype())),
        tensor(cast(to_device(contiguous(t), kCpu),
                    is_complex ? DType::kComplex128 : DType::kFloat64)),
        data(static_cast<const double*>(tensor.data())),
        count(tensor.size() * (is_complex ? 2 : 1)) {}
  bool is_complex;
  Tensor tensor;
  const double* data;
  int64_t count;
};

std::string difference(int64_t i, double expected, double result) {
  return cat("element ", i, " is ", result, ", the default's is ", expected);
}

std::string inexact_difference(const Tensor& expected, const Tensor& result) {
  const Numbers a(expected), b(result);
  double largest = 0.0;
  for (int64_t i = 0; i < a.count; ++i) {
    if (std::isfinite(a.data[i])) largest = std::max(largest, std::abs(a.data[i]));
  }
  const double allowed = largest * tolerance(expected.dtype());
  for (int64_t i = 0; i < a.count; ++i) {
    const double x = a.data[i], y = b.data[i];
    const bool is_same = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= allowed;
    if (!is_same) return difference(i / (a.is_complex ? 2 : 1), x, y);
  }
  return "";
}

std::string exact_difference(const Tensor& expected, const Tensor& result) {
  const Tensor a = to_device(contiguous(expected), kCpu), b = to_device(contiguous(result), kCpu);
  return visit_dtype(AllTypes{}, a.dtype(), "comparison of kernels", [&](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      const T *x = a.data<T>(), *y = b.data<T>();
      for (int64_t i = 0; i < a.size(); ++i) {
        if (x[i] != y[i]) {
          return difference(i, static_cast<double>(x[i]), static_cast<double>(y[i]));
        }
      }
    }
    return "";
  });
}

}  // namespace

std::string disagreement(const Tensor& expected, const Tensor& result) {
  const bool is_exact = !is_floating(expected.dtype()) && !is_complex(expected.dtype());
  return is_exact ? exact_difference(expected, result) : inexact_difference(expected, result);
}

bool results_agree(const Tensor& expected, const Tensor& result) {
  return disagreement(expected, result).empty();
}

}  // namespace cuop
