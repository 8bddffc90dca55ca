#include "cuop/core/scalar.h"

#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

Scalar::Scalar(uint64_t value) {
  if (value >> 63 != 0) {
    value_ = value;
  } else {
    value_ = static_cast<int64_t>(value);
  }
}

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
  if (is_complex()) {
    throw DTypeError(cat("scalar: the complex number ", *this, " was given, a real one is needed"));
  }
  return to_complex().real();
}

int64_t Scalar::to_int64() const {
  check_fits("scalar", DType::kInt64);
  return static_cast<int64_t>(to_bits64());
}

uint64_t Scalar::to_bits64() const {
  if (is_bool()) return std::get<bool>(value_) ? 1 : 0;
  if (is_large()) return std::get<uint64_t>(value_);
  if (is_integer()) return static_cast<uint64_t>(std::get<int64_t>(value_));
  if (fits(DType::kInt64)) return static_cast<uint64_t>(static_cast<int64_t>(to_double()));
  check_fits("scalar", DType::kUInt64);
  return static_cast<uint64_t>(to_double());
}

bool Scalar::fits(DType dtype) const {
  if (cuop::is_complex(dtype) || cuop::is_bool(dtype)) return true;
  if (is_complex()) return false;
  if (!cuop::is_integer(dtype) || is_bool()) return true;
  const IntegerRange range = integer_range(dtype);
  if (is_large()) return std::get<uint64_t>(value_) <= range.high;
  if (is_integer()) {
    const int64_t value = std::get<int64_t>(value_);
    return value < 0 ? value >= range.low : static_cast<uint64_t>(value) <= range.high;
  }
  // The limits as powers of two, which doubles hold: the greatest value of a 64-bit dtype is none.
  const double low = static_cast<double>(range.low);
  const double beyond = 2.0 * static_cast<double>(range.high / 2 + 1);
  const double whole = std::trunc(std::get<double>(value_));
  return whole >= low && whole < beyond;
}

void Scalar::check_fits(const char* who, DType dtype) const {
  if (fits(dtype)) return;
  if (is_complex()) {
    throw DTypeError(
        cat(who, ": the complex number ", *this, " does not fit dtype ", dtype, ", which is real"));
  }
  const IntegerRange range = integer_range(dtype);
  throw OverflowError(cat(who, ": the number ", *this, " does not fit dtype ", dtype,
                          ", which holds ", range.low, " to ", range.high));
}

DType Scalar::promote_with(DType other) const {
  if (is_complex()) return cuop::is_bool(other) ? natural_dtype() : complex_dtype(other);
  if (is_floating())
    return cuop::is_floating(other) || cuop::is_complex(other) ? other : DType::kFloat64;
  if (is_integer()) return cuop::is_bool(other) ? natural_dtype() : other;
  return other;
}

DType Scalar::natural_dtype() const {
  if (is_complex()) return DType::kComplex128;
  if (is_floating()) return DType::kFloat64;
  if (is_large()) return DType::kUInt64;
  return is_integer() ? DType::kInt64 : DType::kBool;
}

std::ostream& operator<<(std::ostream& out, const Scalar& number) {
  if (number.is_bool()) return out << (std::get<bool>(number.value_) ? "true" : "false");
  std::visit([&out](auto value) { out << value; }, number.value_);
  return out;
}

}  // namespace cuop
