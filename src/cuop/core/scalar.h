// A host number that takes part in an operation without deciding its dtype more than it must
// (a Python number beside a float32 tensor stays float32).
#pragma once

#include <complex>
#include <cstdint>
#include <ostream>
#include <variant>

#include "cuop/core/dtype.h"

namespace cuop {

class Scalar {
 public:
  Scalar() : value_(int64_t{0}) {}
  Scalar(bool value) : value_(value) {}
  Scalar(int value) : value_(static_cast<int64_t>(value)) {}
  Scalar(int64_t value) : value_(value) {}
  Scalar(uint64_t value);
  Scalar(double value) : value_(value) {}
  Scalar(float value) : value_(static_cast<double>(value)) {}
  Scalar(std::complex<double> value) : value_(value) {}

  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_) || is_large(); }
  bool is_floating() const { return std::holds_alternative<double>(value_); }
  bool is_complex() const { return std::holds_alternative<std::complex<double>>(value_); }
  /// An integer beyond int64, which only uint64 holds.
  bool is_large() const { return std::holds_alternative<uint64_t>(value_); }

  std::complex<double> to_complex() const;
  double to_double() const;  ///< DTypeError when complex
  /// Truncates; DTypeError when complex, OverflowError when int64 does not hold it.
  int64_t to_int64() const;
  /// The same modulo 2^64 for any number that int64 or uint64 holds: cast to an integer type that
  /// `fits` allows, these bits are the number.
  uint64_t to_bits64() const;

  /// Whether a tensor of this dtype can hold the number. Fractions are cut off before an integer
  /// dtype is asked; floats hold every real number (rounded, or infinite), bool everything.
  bool fits(DType dtype) const;
  /// OverflowError "who: the number 300 does not fit dtype int8, which holds -128 to 127", or
  /// DTypeError for a complex number and a real dtype.
  void check_fits(const char* who, DType dtype) const;

  /// The dtype of a tensor of dtype `other` combined with this number, as NumPy 2 does for Python
  /// numbers: the tensor's dtype unless the number is of a higher kind.
  DType promote_with(DType other) const;
  /// bool, int64 (uint64 for large integers), float64 or complex128.
  DType natural_dtype() const;

 private:
  friend std::ostream& operator<<(std::ostream& out, const Scalar& number);

  std::variant<bool, int64_t, uint64_t, double, std::complex<double>> value_;  // uint64_t: large
};

}  // namespace cuop
