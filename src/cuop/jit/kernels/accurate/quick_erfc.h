// erfc and gelu of double for the usual arguments.
#pragma once

#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

/// F(t) / (1 + slope a) with t = (a - 4) / (a + 4) (M. M. Shepherd and J. G. Laframboise, Math.
/// Comp. 36, 1981). The slope makes F nearly constant, so that the rounding errors of t hardly
/// count; first_low is what coefficients[0] lacks.
template <int Count>
CUOP_FN Sum<double> tail_factor(double a, const double (&coefficients)[Count], double first_low,
                                double slope) {
  const Sum<double> product = two_product(slope, a);
  const double e = 1 + product.high, e_low = (product.high - (e - 1)) + product.low;
  const double inverse = 1 / e, t = (a - 4) / (a + 4);
  const Sum<double> f =
      quick_sum(coefficients[0], multiply_add(t, polynomial<1>(coefficients, t), first_low));
  const double q = f.high * inverse;
  return {q, (residual(f.high, q, e) + (f.low - q * e_low)) * inverse};
}
/// factor e^-square: of the factor 1 + r + tail the 1 stays apart, so that its roundings are small.
CUOP_FN double times_exp(Sum<double> factor, Sum<double> square) {
  using C = Coefficients<double>;
  constexpr double kScale = Format<double>::kPower + 1;
  const double shifted = multiply_add(square.high, -C::kInvLn2, kScale), n = kScale - shifted;
  const double high = multiply_add(n, C::kLn2High, -square.high);
  const double low = multiply_add(n, C::kLn2Low, -square.low), r = high + low;
  const double tail = multiply_add(r * r, polynomial(C::kExp, r), low - (r - high));
  const double rest = multiply_add(factor.low, r, multiply_add(factor.high, tail, factor.low));
  return (factor.high + multiply_add(factor.high, r, rest)) * pow2_half(shifted);
}

/// Whether erfc(x) may be below the normal numbers, or x is no number.
CUOP_FN bool is_beyond_erfc(double x) { return !(x <= 26); }

/// Up to 1/2 by the series of erf.
CUOP_FN double quick_erfc(double x) {
  using C = Coefficients<double>;
  const double size = math::abs(x), a = at_most(size, 26.0);
  const Sum<double> square = two_product(a, a);
  const double tail = times_exp(tail_factor(a, C::kErfcTail, C::kErfcTailLow, 1.5), square);
  const double far = x < 0 ? 2 - tail : tail;
  const double one = 1 - x, one_low = (1 - one) - x;
  const double near = one + (one_low - x * polynomial(C::kErf, square.high));
  return size < 0.5 ? near : far;
}

/// Whether gelu(x) is beyond the polynomial's range on the left, or x no number.
CUOP_FN bool is_beyond_gelu(double x) { return !(x >= -12); }

/// x P(X <= x) by the tail P(X > |x|).
CUOP_FN double quick_gelu(double x) {
  using C = Coefficients<double>;
  const double size = math::abs(x), a = at_most(size, 12.5);
  const Sum<double> q = tail_factor(a, C::kNormalTail, C::kNormalTailLow, 1.0);
  const Sum<double> p = two_product(a, q.high);
  const double tail =
      times_exp(Sum<double>{p.high, multiply_add(a, q.low, p.low)}, two_product(a, 0.5 * a));
  return math::copysign((x > 0 ? x : 0.0) - tail, x);
}

}  // namespace cuop::jit::accurate
