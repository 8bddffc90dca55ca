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

inline Tensor add(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"add">(out, x1, x2);
}
inline Tensor subtract(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"subtract">(out, x1, x2);
}
inline Tensor multiply(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"multiply">(out, x1, x2);
}
inline Tensor divide(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"divide">(out, x1, x2);
}
inline Tensor floor_divide(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"floor_divide">(out, x1, x2);
}
inline Tensor remainder(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"remainder">(out, x1, x2);
}
inline Tensor pow(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"pow">(out, x1, x2);
}
inline Tensor equal(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"equal">(out, x1, x2);
}
inline Tensor not_equal(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"not_equal">(out, x1, x2);
}
inline Tensor less(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"less">(out, x1, x2);
}
inline Tensor less_equal(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"less_equal">(out, x1, x2);
}
inline Tensor greater(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"greater">(out, x1, x2);
}
inline Tensor greater_equal(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"greater_equal">(out, x1, x2);
}
inline Tensor logical_and(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"logical_and">(out, x1, x2);
}
inline Tensor logical_or(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"logical_or">(out, x1, x2);
}
inline Tensor logical_xor(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"logical_xor">(out, x1, x2);
}
inline Tensor bitwise_and(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"bitwise_and">(out, x1, x2);
}
inline Tensor bitwise_or(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"bitwise_or">(out, x1, x2);
}
inline Tensor bitwise_xor(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"bitwise_xor">(out, x1, x2);
}
inline Tensor bitwise_left_shift(const Operand& x1, const Operand& x2,
                                 const Tensor* out = nullptr) {
  return detail::call<"bitwise_left_shift">(out, x1, x2);
}
inline Tensor bitwise_right_shift(const Operand& x1, const Operand& x2,
                                  const Tensor* out = nullptr) {
  return detail::call<"bitwise_right_shift">(out, x1, x2);
}
inline Tensor maximum(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"maximum">(out, x1, x2);
}
inline Tensor minimum(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"minimum">(out, x1, x2);
}
inline Tensor copysign(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"copysign">(out, x1, x2);
}
inline Tensor nextafter(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"nextafter">(out, x1, x2);
}
inline Tensor logaddexp(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"logaddexp">(out, x1, x2);
}
inline Tensor hypot(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"hypot">(out, x1, x2);
}
inline Tensor atan2(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"atan2">(out, x1, x2);
}
inline Tensor leaky_relu(const Operand& x1, const Operand& x2, const Tensor* out = nullptr) {
  return detail::call<"leaky_relu">(out, x1, x2);
}

inline Tensor negative(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"negative">(out, x);
}
inline Tensor positive(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"positive">(out, x);
}
inline Tensor abs(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"abs">(out, x);
}
inline Tensor sign(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"sign">(out, x);
}
inline Tensor square(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"square">(out, x);
}
inline Tensor reciprocal(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"reciprocal">(out, x);
}
inline Tensor real(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"real">(out, x);
}
inline Tensor imag(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"imag">(out, x);
}
inline Tensor conj(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"conj">(out, x);
}
inline Tensor logical_not(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"logical_not">(out, x);
}
inline Tensor isnan(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"isnan">(out, x);
}
inline Tensor isinf(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"isinf">(out, x);
}
inline Tensor isfinite(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"isfinite">(out, x);
}
inline Tensor signbit(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"signbit">(out, x);
}
inline Tensor bitwise_invert(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"bitwise_invert">(out, x);
}
inline Tensor floor(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"floor">(out, x);
}
inline Tensor ceil(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"ceil">(out, x);
}
inline Tensor trunc(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"trunc">(out, x);
}
inline Tensor round(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"round">(out, x);
}
inline Tensor exp(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"exp">(out, x);
}
inline Tensor exp2(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"exp2">(out, x);
}
inline Tensor expm1(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"expm1">(out, x);
}
inline Tensor log(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"log">(out, x);
}
inline Tensor log1p(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"log1p">(out, x);
}
inline Tensor log2(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"log2">(out, x);
}
inline Tensor log10(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"log10">(out, x);
}
inline Tensor sqrt(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"sqrt">(out, x);
}
inline Tensor rsqrt(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"rsqrt">(out, x);
}
inline Tensor cbrt(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"cbrt">(out, x);
}
inline Tensor erf(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"erf">(out, x);
}
inline Tensor erfc(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"erfc">(out, x);
}
inline Tensor sin(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"sin">(out, x);
}
inline Tensor cos(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"cos">(out, x);
}
inline Tensor tan(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"tan">(out, x);
}
inline Tensor asin(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"asin">(out, x);
}
inline Tensor acos(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"acos">(out, x);
}
inline Tensor atan(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"atan">(out, x);
}
inline Tensor sinh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"sinh">(out, x);
}
inline Tensor cosh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"cosh">(out, x);
}
inline Tensor tanh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"tanh">(out, x);
}
inline Tensor asinh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"asinh">(out, x);
}
inline Tensor acosh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"acosh">(out, x);
}
inline Tensor atanh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"atanh">(out, x);
}
inline Tensor relu(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"relu">(out, x);
}
inline Tensor sigmoid(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"sigmoid">(out, x);
}
inline Tensor silu(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"silu">(out, x);
}
inline Tensor softplus(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"softplus">(out, x);
}
inline Tensor gelu(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"gelu">(out, x);
}
inline Tensor gelu_tanh(const Operand& x, const Tensor* out = nullptr) {
  return detail::call<"gelu_tanh">(out, x);
}

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

template <class A, class B>
requires TensorOperands<A, B> Tensor operator+(const A& a, const B& b) { return add(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator-(const A& a, const B& b) { return subtract(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator*(const A& a, const B& b) { return multiply(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator/(const A& a, const B& b) { return divide(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator%(const A& a, const B& b) { return remainder(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator&(const A& a, const B& b) { return bitwise_and(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator|(const A& a, const B& b) { return bitwise_or(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator^(const A& a, const B& b) { return bitwise_xor(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator==(const A& a, const B& b) { return equal(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator!=(const A& a, const B& b) { return not_equal(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator<(const A& a, const B& b) { return less(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator<=(const A& a, const B& b) { return less_equal(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator>(const A& a, const B& b) { return greater(a, b); }
template <class A, class B>
requires TensorOperands<A, B> Tensor operator>=(const A& a, const B& b) {
  return greater_equal(a, b);
}

inline const Tensor& operator+=(const Tensor& x, const Operand& y) {
  add(x, y, &x);
  return x;
}
inline const Tensor& operator-=(const Tensor& x, const Operand& y) {
  subtract(x, y, &x);
  return x;
}
inline const Tensor& operator*=(const Tensor& x, const Operand& y) {
  multiply(x, y, &x);
  return x;
}
inline const Tensor& operator/=(const Tensor& x, const Operand& y) {
  divide(x, y, &x);
  return x;
}

}  // namespace cuop
