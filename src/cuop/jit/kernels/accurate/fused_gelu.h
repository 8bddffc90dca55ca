// gelu of double where there are fused operations.
#pragma once

#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

/// Whether gelu(x) is beyond the polynomial's range on the left, or x no number.
CUOP_FN bool is_beyond_gelu(double x) { return !(x >= -12); }

/// x P(X <= x) by twice the tail 2 P(X > a) = e^(-a^2/2) F(t) / (1 + 5/4 a), t = (a - 4) / (a + 4),
/// with one division and a correction of each quotient; up to 0.33, where the slope of F is large,
/// x times 1/2 and the series of erf. Largest error found 1.38 ulp.
CUOP_FN double fused_gelu(double x) {
  using C = Fused<double>;
  using D = Coefficients<double>;
  const double size = math::abs(x), a = size > 12.5 ? 12.5 : size;
  // The factors of the quotients with what their rounding took.
  const double sum = a + 4, sum_low = a - (sum - 4), apart = a - 4, apart_low = a - (apart + 4);
  const double e = math::fma(1.25, a, 1.0), e_low = math::fma(1.25, a, 1 - e);
  const double inverse = 1 / (sum * e), sum_inverse = e * inverse, e_inverse = sum * inverse;
  const double t = apart * sum_inverse;
  const double t_low =
      (math::fma(-t, sum, apart) + math::fma(-t, sum_low, apart_low)) * sum_inverse;
  const double slope = math::fma(t, math::fma(3 * t, C::kGelu[3], 2 * C::kGelu[2]), C::kGelu[1]);
  const double rest = polynomial<1>(C::kGelu, t), f = math::fma(t, rest, C::kGelu[0]);
  const double f_low = math::fma(t, rest, C::kGelu[0] - f) + math::fma(t_low, slope, C::kGeluRest);
  const double q = f * e_inverse;
  const double q_low = (math::fma(-q, e, f) + math::fma(-q, e_low, f_low)) * e_inverse;
  const double half = 0.5 * a, square = a * half;
  const Sum<double> power = quick_exp(-square, -math::fma(a, half, -square));
  const double tail = q * power.high;
  const double tail_low =
      math::fma(q, power.high, -tail) + math::fma(q, power.low, q_low * power.high);
  const double p = half * tail, p_low = math::fma(half, tail, -p) + half * tail_low;
  const double far = x < 0 ? -(p + p_low) : (x - p) - p_low;
  const double series = 0.5 + 0.5 * polynomial(D::kErf, 0.5 * (x * x));
  const double near = math::fma(x, x * D::kRootHalf * series, 0.5 * x);
  return math::copysign(size < 0.33 ? near : far, x);
}

}  // namespace cuop::jit::accurate
