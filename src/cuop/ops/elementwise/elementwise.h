// Elementwise operations on tensors and numbers, and the operators of Tensor. Shapes broadcast and
// dtypes promote as in NumPy 2; what each operation computes and which dtypes it takes stands with
// its row in jit/kernels. Every function takes
//   out   an optional preallocated result of the broadcast shape. It may be of any dtype that the
//         result's kind converts to (float64 to float32, but not to int32), and may be exactly one
//         of the inputs; any other overlap with an input is refused.
// Errors: ShapeError (shapes that do not broadcast), DTypeError (a dtype outside the operation's, a
// number that an integer dtype cannot hold), DeviceError (tensors on different devices),
// ExecutionError (`out` is read-only or overlaps). Inside a Fused scope (jit/fusion.h) calls
// without `out` are recorded instead of run.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "cuop/ops/elementwise/operand.h"

namespace cuop {

namespace detail {

/// The row of this name in the elementwise table.
int elementwise_code(const char* name);
Tensor elementwise(int code, std::span<const Operand* const> operands, const Tensor* out);

/// An operation's name as a template argument, so that it is looked up once.
template <size_t Size>
struct OpName {
  char text[Size];
  constexpr OpName(const char (&name)[Size]) { std::copy_n(name, Size, text); }
};

template <OpName Name, class... Operands>
Tensor call(const Tensor* out, const Operands&... operands) {
  static const int code = elementwise_code(Name.text);
  const std::array<const Operand*, sizeof...(Operands)> list{&operands...};
  return elementwise(code, list, out);
}

}  // namespace detail

/// Any operation of the table by its name, with as many operands as its row says. ExecutionError
/// when there is none of that name or the count is another.
Tensor elementwise(const char* name, std::span<const Operand* const> operands,
                   const Tensor* out = nullptr);

// Functions of two operands: add(x1, x2, out).
#define CUOP_BINARY(name)                                                                 \
  inline Tensor name(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) { \
    return detail::call<#name>(out, x1, x2);                                              \
  }
CUOP_BINARY(add)
CUOP_BINARY(subtract)
CUOP_BINARY(multiply)
CUOP_BINARY(divide)
CUOP_BINARY(floor_divide)
CUOP_BINARY(remainder)
CUOP_BINARY(pow)
CUOP_BINARY(equal)
CUOP_BINARY(not_equal)
CUOP_BINARY(less)
CUOP_BINARY(less_equal)
CUOP_BINARY(greater)
CUOP_BINARY(greater_equal)
CUOP_BINARY(logical_and)
CUOP_BINARY(logical_or)
CUOP_BINARY(logical_xor)
CUOP_BINARY(bitwise_and)
CUOP_BINARY(bitwise_or)
CUOP_BINARY(bitwise_xor)
CUOP_BINARY(bitwise_left_shift)
CUOP_BINARY(bitwise_right_shift)
CUOP_BINARY(maximum)
CUOP_BINARY(minimum)
CUOP_BINARY(copysign)
CUOP_BINARY(nextafter)
CUOP_BINARY(logaddexp)
CUOP_BINARY(hypot)
CUOP_BINARY(atan2)
CUOP_BINARY(leaky_relu)
#undef CUOP_BINARY

// And of one: negative(x, out).
#define CUOP_UNARY(name)                                              \
  inline Tensor name(const Operand& x, const Tensor* out = nullptr) { \
    return detail::call<#name>(out, x);                               \
  }
CUOP_UNARY(negative)
CUOP_UNARY(positive)
CUOP_UNARY(abs)
CUOP_UNARY(sign)
CUOP_UNARY(square)
CUOP_UNARY(reciprocal)
CUOP_UNARY(real)
CUOP_UNARY(imag)
CUOP_UNARY(conj)
CUOP_UNARY(logical_not)
CUOP_UNARY(isnan)
CUOP_UNARY(isinf)
CUOP_UNARY(isfinite)
CUOP_UNARY(signbit)
CUOP_UNARY(bitwise_invert)
CUOP_UNARY(floor)
CUOP_UNARY(ceil)
CUOP_UNARY(trunc)
CUOP_UNARY(round)
CUOP_UNARY(exp)
CUOP_UNARY(exp2)
CUOP_UNARY(expm1)
CUOP_UNARY(log)
CUOP_UNARY(log1p)
CUOP_UNARY(log2)
CUOP_UNARY(log10)
CUOP_UNARY(sqrt)
CUOP_UNARY(rsqrt)
CUOP_UNARY(cbrt)
CUOP_UNARY(erf)
CUOP_UNARY(erfc)
CUOP_UNARY(sin)
CUOP_UNARY(cos)
CUOP_UNARY(tan)
CUOP_UNARY(asin)
CUOP_UNARY(acos)
CUOP_UNARY(atan)
CUOP_UNARY(sinh)
CUOP_UNARY(cosh)
CUOP_UNARY(tanh)
CUOP_UNARY(asinh)
CUOP_UNARY(acosh)
CUOP_UNARY(atanh)
CUOP_UNARY(relu)
CUOP_UNARY(sigmoid)
CUOP_UNARY(silu)
CUOP_UNARY(softplus)
CUOP_UNARY(gelu)
CUOP_UNARY(gelu_tanh)
#undef CUOP_UNARY

/// x brought into [lo, hi].
inline Tensor clip(const Operand& x, const Operand& lo, const Operand& hi,
                   const Tensor* out = nullptr) {
  return detail::call<"clip">(out, x, lo, hi);
}
/// x1 where the condition holds (is nonzero), x2 elsewhere.
inline Tensor where(const Operand& condition, const Operand& x1, const Operand& x2,
                    const Tensor* out = nullptr) {
  return detail::call<"where">(out, condition, x1, x2);
}

inline Tensor operator-(const Tensor& x) { return negative(x); }
inline Tensor operator~(const Tensor& x) { return bitwise_invert(x); }

/// At least one side of an operator is a Tensor; the other may be a number.
template <class A, class B>
concept TensorOperands = (std::same_as<A, Tensor> && std::convertible_to<const B&, Operand>) ||
                         (std::same_as<B, Tensor> && std::convertible_to<const A&, Operand>);

#define CUOP_OPERATOR(symbol, name)                                              \
  template <class A, class B>                                                    \
  requires TensorOperands<A, B> Tensor operator symbol(const A& a, const B& b) { \
    return name(a, b);                                                           \
  }
CUOP_OPERATOR(+, add)
CUOP_OPERATOR(-, subtract)
CUOP_OPERATOR(*, multiply)
CUOP_OPERATOR(/, divide)
CUOP_OPERATOR(%, remainder)
CUOP_OPERATOR(&, bitwise_and)
CUOP_OPERATOR(|, bitwise_or)
CUOP_OPERATOR(^, bitwise_xor)
CUOP_OPERATOR(==, equal)
CUOP_OPERATOR(!=, not_equal)
CUOP_OPERATOR(<, less)
CUOP_OPERATOR(<=, less_equal)
CUOP_OPERATOR(>, greater)
CUOP_OPERATOR(>=, greater_equal)
#undef CUOP_OPERATOR

#define CUOP_ASSIGNMENT(symbol, name)                                       \
  inline const Tensor& operator symbol(const Tensor& x, const Operand& y) { \
    name(x, y, &x);                                                         \
    return x;                                                               \
  }
CUOP_ASSIGNMENT(+=, add)
CUOP_ASSIGNMENT(-=, subtract)
CUOP_ASSIGNMENT(*=, multiply)
CUOP_ASSIGNMENT(/=, divide)
#undef CUOP_ASSIGNMENT

}  // namespace cuop
