#include "cuop/core/scalar.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

std::complex<double> Scalar::to_complex() const {
  return std::visit(
      [](auto value) -> std::complex<double> {
        if constexpr (std::is_same_v<decltype(value), std::complex<double>>) {
          return value;
        } else {
          return static_cast<double>(value);
        }
      },
      value_);
}

double Scalar::to_double() const {
  if (is_complex())
    throw ExecutionError("scalar: a complex number was given, a real one is needed");
  return to_complex().real();
}

int64_t Scalar::to_int64() const {
  if (is_bool()) return std::get<bool>(value_) ? 1 : 0;
  if (is_integer()) return std::get<int64_t>(value_);
  const double value = to_double();
  if (!(value >= -0x1p63 && value < 0x1p63)) {
    throw ExecutionError(cat("scalar: ", value, " does not fit a 64-bit integer"));
  }
  return static_cast<int64_t>(value);
}

DType Scalar::promote_with(DType other) const {
  if (is_complex()) return complex_dtype(other);
  if (is_floating())
    return cuop::is_floating(other) || cuop::is_complex(other) ? other : DType::kFloat64;
  if (is_integer()) return cuop::is_bool(other) ? DType::kInt64 : other;
  return other;
}

DType Scalar::natural_dtype() const {
  if (is_complex()) return DType::kComplex128;
  if (is_floating()) return DType::kFloat64;
  return is_integer() ? DType::kInt64 : DType::kBool;
}

}  // namespace cuop
