// A host number that takes part in an operation without deciding its dtype more than it must
// (a Python number beside a float32 tensor stays float32).
#pragma once

#include <complex>
#include <cstdint>
#include <variant>

#include "cuop/core/dtype.h"

namespace cuop {

class Scalar {
 public:
  Scalar() : value_(int64_t{0}) {}
  Scalar(bool value) : value_(value) {}
  Scalar(int value) : value_(static_cast<int64_t>(value)) {}
  Scalar(int64_t value) : value_(value) {}
  Scalar(double value) : value_(value) {}
  Scalar(float value) : value_(static_cast<double>(value)) {}
  Scalar(std::complex<double> value) : value_(value) {}

  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_floating() const { return std::holds_alternative<double>(value_); }
  bool is_complex() const { return std::holds_alternative<std::complex<double>>(value_); }

  std::complex<double> to_complex() const;
  double to_double() const;  ///< ExecutionError when complex
  int64_t to_int64() const;  ///< truncates; ExecutionError when complex or not representable

  /// The dtype of a tensor of dtype `other` combined with this number, as NumPy 2 does for Python
  /// numbers: the tensor's dtype unless the number is of a higher kind.
  DType promote_with(DType other) const;
  /// bool, int64, float64 or complex128.
  DType natural_dtype() const;

 private:
  std::variant<bool, int64_t, double, std::complex<double>> value_;
};

}  // namespace cuop
