// What an element-wise operation over ranks takes: a distributed tensor or a host number, which is
// the same on all ranks.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>

#include "cuop/core/scalar.h"
#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// Refers to the tensor and does not own it, as cuop::Operand.
class DistOperand {
 public:
  DistOperand(const DistTensor& tensor) : tensor_(&tensor) {}
  DistOperand(const Scalar& number) : number_(number) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number>&& std::convertible_to<Number, Scalar>)
      DistOperand(Number number)
      : number_(Scalar(number)) {}
  DistOperand(std::complex<double> number) : number_(Scalar(number)) {}

  /// Null when it is a number.
  const DistTensor* tensor() const { return tensor_; }
  /// Null when it is a tensor.
  const Scalar* number() const { return tensor_ == nullptr ? &number_ : nullptr; }

 private:
  const DistTensor* tensor_ = nullptr;
  Scalar number_ = false;
};

}  // namespace cuop::dist
