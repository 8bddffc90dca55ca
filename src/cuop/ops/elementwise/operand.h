// What an elementwise operation takes: a tensor or a host number. A number does not decide the
// result's dtype more than it must (1.5 beside a float32 tensor leaves it float32).
#pragma once

#include <concepts>
#include <type_traits>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// A parameter type: it refers to the tensor, of whatever class, and does not own it, as
/// std::string_view a string.
template <class AnyTensor>
class OperandOf {
 public:
  OperandOf(const AnyTensor& tensor) : tensor_(&tensor) {}
  OperandOf(const Scalar& number) : number_(number) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number>&& std::convertible_to<Number, Scalar>)
      OperandOf(Number number)
      : number_(Scalar(number)) {}
  OperandOf(std::complex<double> number) : number_(Scalar(number)) {}

  /// Null when it is a number.
  const AnyTensor* tensor() const { return tensor_; }
  /// Null when it is a tensor.
  const Scalar* number() const { return tensor_ == nullptr ? &number_ : nullptr; }

 private:
  const AnyTensor* tensor_ = nullptr;
  Scalar number_ = false;
};

using Operand = OperandOf<Tensor>;

}  // namespace cuop
