// Functions of float in double, for processors without fused operations, where two numbers of half
// the size cost more. The errors are those of the last rounding and of short polynomials: below
// 0.81 ulp, tried on all arguments up to kMostQuick<float>; what should be is monotone.
#pragma once

#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

/// e^y is power + power * less.
struct ShortExp {
  double power, less;
};
CUOP_FN ShortExp short_exp(double y) {
  using C = Coefficients<double>;
  constexpr double kScale = Format<double>::kPower + 1;
  const double shifted = y * C::kInvLn2 + kScale, r = y - (shifted - kScale) * C::kLn2;
  return {pow2_half(shifted), r + r * r * polynomial(Coefficients<float>::kShortExp, r)};
}
CUOP_FN double short_less_one(ShortExp e) { return (e.power - 1) + e.power * e.less; }
/// factor / (1 + e^y).
CUOP_FN float short_logistic(double factor, double y) {
  const ShortExp e = short_exp(y);
  return static_cast<float>(factor / ((1 + e.power) + e.power * e.less));
}

CUOP_FN float short_sigmoid(float x) { return short_logistic(1, -x); }
CUOP_FN float short_silu(float x) { return math::copysign(short_logistic(x, -x), x); }
CUOP_FN float short_gelu_tanh(float x) {
  using C = Coefficients<double>;
  const double a = x, y = a * (C::kGeluLinear + C::kGeluCubic * (a * a));
  return math::copysign(short_logistic(a, -y), x);
}
CUOP_FN float short_expm1(float x) {
  return math::copysign(static_cast<float>(short_less_one(short_exp(x))), x);
}
CUOP_FN float short_tanh(float x) {
  const double y = short_less_one(short_exp(2.0 * at_most(math::abs(x), ExpRange<float>::kOne)));
  return math::copysign(static_cast<float>(y / (y + 2)), x);
}

/// As fused_cbrt, but with the whole series of e at once.
CUOP_FN float short_cbrt(float x) {
  constexpr int32_t kFirst = 1419900000;  // with the least largest |e|, 0.102
  const float size = math::abs(x);
  const auto thirds =
      static_cast<int32_t>(static_cast<float>(static_cast<int32_t>(bits_of(size))) * (-1.0f / 3));
  const double first = from_bits<float>(static_cast<uint32_t>(thirds + kFirst)), a = size;
  const double e = 1 - a * first * (first * first), square = first * first;
  const double p = e * polynomial(Coefficients<float>::kShortCbrt, e);
  return math::copysign(static_cast<float>(a * square * (1 + p)), x);
}

}  // namespace cuop::jit::accurate
