// erfc and gelu of double for the usual arguments where whole vectors have no form
// (cpu/lane_tails_isa.h): n / (1 + slope a) (1 + p) e^-s, where slope makes p small, numerator and
// denominator exact to more digits than a double has.
#pragma once

#include "cuop/jit/kernels/accurate/error_function.h"

namespace cuop::jit::accurate {

/// The p of (1 + slope a) M(a) = 1 + p, M decreasing as 1/a: u P(t) with u = a / (a + middle) and
/// t = 2 u - 1. It vanishes with a, so that what is next to 1 keeps its order.
template <int Count>
CUOP_FN double tail_rest(double a, double middle, const double (&coefficients)[Count]) {
  const double u = a / (a + middle), t = multiply_add(2.0, u, -1.0);
  return u * multiply_add(t, polynomial<1>(coefficients, t), coefficients[0]);
}

/// (1 + p) e^-square as (high + low) 2^n of n + kPower + 1.
CUOP_FN Power<double> decline(double p, Sum<double> square) {
  using C = Coefficients<double>;
  constexpr double kScale = Format<double>::kPower + 1;
  const double shifted = kScale - square.high * C::kInvLn2, n = kScale - shifted;
  const double high = n * C::kLn2High - square.high;  // exact
  const double low = n * C::kLn2Low - square.low, r = high + low;
  const double tail = r * r * polynomial(C::kExp, r) + low;
  const Sum<double> e = quick_sum(1.0, high);
  const Sum<double> value = quick_sum(e.high, e.high * p + (e.low + (tail + tail * p)));
  return {value.high, value.low, shifted};
}

/// a = head + rest, halves of its digits, and its square.
struct Squared {
  double head, rest;
  Sum<double> square;
};
CUOP_FN Squared squared_exactly(double a) {
  const double head = upper_half(a), rest = a - head, square = a * a;
  return {head, rest, {square, (head * head - square) + rest * (a + head)}};
}

/// Where erfc(x) may be below the normal numbers: beyond 26. NaN stays NaN.
CUOP_FN Doubt<double> doubt_of_erfc(double x) { return (bits_of(26.0) - bits_of(x)) & ~bits_of(x); }
CUOP_FN double unfused_erfc(double x) {
  const double a = at_most(math::abs(x), 26.0);
  const Squared s = squared_exactly(a);
  const Power<double> n = decline(tail_rest(a, 4.0, Fused<double>::kErfcTail), s.square);
  const Sum<double> first = two_sum(1.0, 1.5 * s.head);
  const Sum<double> d = quick_sum(first.high, first.low + 1.5 * s.rest);  // 1 + 1.5 a
  const Sum<double> q = short_quotient(Sum<double>{n.high, n.low}, d);
  const double tail = (q.high + q.low) * pow2_half(n.shifted);
  return x < 0 ? 2 - tail : tail;
}

/// Beyond the polynomial's range on the left.
CUOP_FN Doubt<double> doubt_of_gelu(double x) { return doubt_beyond(x, 12.0) & bits_of(x); }
/// x P(X <= x) by the tail P(X > |x|).
CUOP_FN double unfused_gelu(double x) {
  const double a = at_most(math::abs(x), 12.5);
  const Squared s = squared_exactly(a);
  const Power<double> n = decline(tail_rest(a, 5.0, Fused<double>::kNormalTail),
                                  {0.5 * s.square.high, 0.5 * s.square.low});
  const Sum<double> q = short_quotient(Sum<double>{n.high, n.low}, two_sum(1.0, a));
  const double twice = s.head * q.high + (s.rest * q.high + a * q.low);
  return math::copysign((x > 0 ? x : 0.0) - 0.5 * twice * pow2_half(n.shifted), x);
}

}  // namespace cuop::jit::accurate
