#include <cmath>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/matmul/coefficients_internal.h"

namespace cuop {

namespace {

bool fits(int64_t value, DType dtype) {
  return visit_dtype(IntegerTypes{}, dtype, "coefficient",
                     [&]<class T>(TypeTag<T>) { return std::in_range<T>(value); });
}

}  // namespace

bool is_zero(const Scalar& value) { return value.to_complex() == std::complex<double>(0); }

void check_coefficient(const char* who, const char* name, const Scalar& value, DType dtype) {
  if (value.is_complex() && !is_complex(dtype)) {
    throw ExecutionError(cat(who, ": ", name, " is complex, the result is ", dtype));
  }
  if (!is_integer(dtype) && !is_bool(dtype)) return;
  if (value.is_floating() && value.to_double() != std::nearbyint(value.to_double())) {
    throw ExecutionError(cat(who, ": ", name, " is ", value.to_double(), ", the result is ", dtype,
                             ", which needs a whole number"));
  }
  if (is_integer(dtype) && !fits(value.to_int64(), dtype)) {
    throw DTypeError(
        cat(who, ": ", name, " is ", value.to_int64(), ", which does not fit dtype ", dtype));
  }
}

void check_beta(const char* who, const Scalar& beta, DType dtype, const Tensor* out) {
  check_coefficient(who, "beta", beta, dtype);
  if (!is_zero(beta) && (out == nullptr || !out->is_defined())) {
    throw ExecutionError(cat(who, ": beta is not 0, but there is no output to scale; pass out"));
  }
}

}  // namespace cuop
