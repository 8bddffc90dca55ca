// The operators of distributed tensors: x + 1, 2 / x, x * y, -x, x < y, each an operation of
// algo/elementwise.h.
#pragma once

#include "cuop/dist/algo/elementwise.h"

namespace cuop::dist {

/// At least one side of an operator is a DistTensor; the other may be a number.
template <class A, class B>
concept DistOperands = (std::same_as<A, DistTensor> &&
                        std::convertible_to<const B&, DistOperand>) ||
                       (std::same_as<B, DistTensor> && std::convertible_to<const A&, DistOperand>);

inline DistTensor operator-(const DistTensor& x) { return elementwise("negative", x); }
inline DistTensor operator~(const DistTensor& x) { return elementwise("bitwise_invert", x); }

template <class A, class B>
requires DistOperands<A, B> DistTensor operator+(const A& a, const B& b) {
  return elementwise("add", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator-(const A& a, const B& b) {
  return elementwise("subtract", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator*(const A& a, const B& b) {
  return elementwise("multiply", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator/(const A& a, const B& b) {
  return elementwise("divide", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator%(const A& a, const B& b) {
  return elementwise("remainder", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator==(const A& a, const B& b) {
  return elementwise("equal", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator!=(const A& a, const B& b) {
  return elementwise("not_equal", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator<(const A& a, const B& b) {
  return elementwise("less", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator<=(const A& a, const B& b) {
  return elementwise("less_equal", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator>(const A& a, const B& b) {
  return elementwise("greater", a, b);
}
template <class A, class B>
requires DistOperands<A, B> DistTensor operator>=(const A& a, const B& b) {
  return elementwise("greater_equal", a, b);
}

}  // namespace cuop::dist
