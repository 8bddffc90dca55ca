// The table of elementwise operations: one functor a row. An operation's code is its position here.
#pragma once

#include "cuop/jit/kernels/activation.h"
#include "cuop/jit/kernels/arithmetic.h"
#include "cuop/jit/kernels/circular.h"
#include "cuop/jit/kernels/error_function.h"
#include "cuop/jit/kernels/exponential.h"
#include "cuop/jit/kernels/hyperbolic.h"
#include "cuop/jit/kernels/inverse_circular.h"
#include "cuop/jit/kernels/inverse_hyperbolic.h"
#include "cuop/jit/kernels/logarithm.h"
#include "cuop/jit/kernels/logic.h"
#include "cuop/jit/kernels/rectifier.h"
#include "cuop/jit/kernels/root.h"
#include "cuop/jit/kernels/square_root.h"

namespace cuop::jit {

template <class... F>
struct FunctorList {
  static constexpr int size = sizeof...(F);
};

using ElementwiseOps = FunctorList<
    fn::Add, fn::Subtract, fn::Multiply, fn::Divide, fn::FloorDivide, fn::Remainder, fn::Power,
    fn::Negative, fn::Positive, fn::Abs, fn::Sign, fn::Square, fn::Reciprocal, fn::Real, fn::Imag,
    fn::Conj, fn::Equal, fn::NotEqual, fn::Less, fn::LessEqual, fn::Greater, fn::GreaterEqual,
    fn::LogicalAnd, fn::LogicalOr, fn::LogicalXor, fn::LogicalNot, fn::IsNan, fn::IsInf,
    fn::IsFinite, fn::SignBit, fn::BitwiseAnd, fn::BitwiseOr, fn::BitwiseXor, fn::BitwiseInvert,
    fn::BitwiseLeftShift, fn::BitwiseRightShift, fn::Maximum, fn::Minimum, fn::Clip, fn::Where,
    fn::Floor, fn::Ceil, fn::Trunc, fn::Round, fn::CopySign, fn::NextAfter, fn::Exp, fn::Exp2,
    fn::Expm1, fn::Log, fn::Log1p, fn::Log2, fn::Log10, fn::LogAddExp, fn::Sqrt, fn::Rsqrt,
    fn::Cbrt, fn::Hypot, fn::Erf, fn::Erfc, fn::Atan2, fn::Sin, fn::Cos, fn::Tan, fn::Asin,
    fn::Acos, fn::Atan, fn::Sinh, fn::Cosh, fn::Tanh, fn::Asinh, fn::Acosh, fn::Atanh, fn::Relu,
    fn::LeakyRelu, fn::Sigmoid, fn::Silu, fn::Softplus, fn::Gelu, fn::GeluTanh>;

namespace detail {
template <class Wanted, class... F>
CUOP_FN constexpr int position_in(FunctorList<F...>) {
  int position = 0, found = -1;
  ((found = __is_same(Wanted, F) ? position : found, ++position), ...);
  return found;
}
}  // namespace detail

/// The code of the operation whose functor is F.
template <class F>
inline constexpr int op_code = detail::position_in<F>(ElementwiseOps{});

}  // namespace cuop::jit
