// erfc and gelu where there are fused operations: n / (1 + slope a) (1 + p) e^-s, where slope makes
// p small. Of float below 0.98 ulp, and erfc monotone, tried on all arguments; of double
// below 1.45 (far right; else 1.05), tried on millions.
#pragma once

#include "cuop/jit/kernels/accurate/fused_exponential.h"

namespace cuop::jit::accurate {

/// The p of (1 + slope a) M(a) = 1 + p, M decreasing as 1/a: u P(t) with u = a / (a + middle) and
/// t = 2 u - 1, which has more digits as a quotient of its own where a is not small.
template <int Count>
CUOP_FN float fused_tail_rest(float a, float middle, const float (&coefficients)[Count]) {
  const float divisor = a + middle, u = a / divisor;
  const float t = chosen(a < 2, math::fma(2.0f, u, -1.0f), (a - middle) / divisor);
  return math::fma(u * t, polynomial<1>(coefficients, t), u * coefficients[0]);
}

/// 2^64 n (1 + p) / (1 + slope a) e^-(square + square_low): e^-square = 2^-k (1 + high + rest) with
/// high up to ln(2)/2, whose product with n / (1 + slope a) stays apart with its rounding error.
CUOP_FN float lifted_tail(float n, float a, float slope, float p, float square, float square_low) {
  using C = Coefficients<float>;
  constexpr float kScale = Format<float>::kPower + 1 + 64;
  const float d = math::fma(slope, a, 1.0f), inverse = 1 / d, g = n * inverse;
  const float d_low = math::fma(slope, a, 1 - d);
  const float g_low = math::fma(-g, d_low, math::fma(-g, d, n)) * inverse;
  const float shifted = math::fma(square, -C::kInvLn2, kScale), k = kScale - shifted;
  const float high = math::fma(k, C::kLn2, -square);  // exact
  const float low = math::fma(k, C::kLn2Rest, -square_low);
  const float r = high + low;
  // r^2 / 2 of both parts: the rounding error of r would count.
  const float half_square = math::fma(high * high, 0.5f, math::fma(low, high, low));
  const float tail = math::fma(r * r * r, polynomial(Fused<float>::kExpRest, r), half_square);
  const float y = math::fma(g, high, g), y_low = math::fma(g, high, g - y);
  const float rest = math::fma(g, tail, math::fma(g_low, high, g_low) + y_low);
  return (y + math::fma(p, y + rest, rest)) * pow2_half(shifted);
}

/// 2^-64 x for x >= 0, in whole numbers: multiplications with results below the normal numbers are
/// slow. Of the two candidates the right one is the larger.
CUOP_FN float without_lift(float x) {
  constexpr uint32_t kLift = 64u << 23, kLeast = 65u << 23;
  const auto normal = static_cast<int32_t>(bits_of(x) - kLift);
  const auto small = static_cast<int32_t>(bits_of(x + 0x1p-62f) - kLeast);
  return from_bits<float>(static_cast<uint32_t>(normal > small ? normal : small));
}

/// Of all x but NaN.
CUOP_FN float fused_erfc(float x) {
  using C = Fused<float>;
  const float a = math::abs(x), square = a * a;
  const float p = fused_tail_rest(a, 3.0f, C::kErfcTail);
  const float y = without_lift(lifted_tail(1.0f, a, 1.5f, p, square, math::fma(a, a, -square)));
  const float tail = a > 10.1f ? 0.0f : y;  // erfc(10.06) rounds to 0
  return x < 0 ? 2 - tail : tail;
}

/// x P(X <= x) by the tail P(X > |x|).
CUOP_FN float fused_gelu(float x) {
  using C = Fused<float>;
  const float a = math::abs(x), half = 0.5f * a, square = a * half;
  const float p = fused_tail_rest(a, 5.0f, C::kNormalTail);
  const float lifted = lifted_tail(half, a, 1.0625f, p, square, math::fma(a, half, -square));
  const float tail = a > 14.5f ? 0.0f : 0x1p-64f * lifted;
  return math::copysign((x > 0 ? a : 0.0f) - tail, x);
}

/// As fused_tail_rest. It vanishes with a, so that what is next to 1 keeps its order.
template <int Count>
CUOP_FN double tail_rest(double a, double middle, const double (&coefficients)[Count]) {
  const double u = a / (a + middle), t = multiply_add(2.0, u, -1.0);
  return u * multiply_add(t, polynomial<1>(coefficients, t), coefficients[0]);
}

/// As lifted_tail, without its lift.
CUOP_FN double fused_tail(double n, double a, double slope, double p, double square,
                          double square_low) {
  using C = Coefficients<double>;
  constexpr double kScale = Format<double>::kPower + 1;
  const double d = math::fma(slope, a, 1.0), inverse = 1 / d, g = n * inverse;
  const double d_low = math::fma(slope, a, 1 - d);
  const double g_low = math::fma(-g, d_low, math::fma(-g, d, n)) * inverse;
  const double shifted = math::fma(square, -C::kInvLn2, kScale), k = kScale - shifted;
  const double high = math::fma(k, C::kLn2High, -square);  // exact
  const double low = math::fma(k, C::kLn2Low, -square_low), r = high + low;
  const double tail = math::fma(r * r, polynomial(C::kExp, r), low);
  const double y = math::fma(g, high, g), y_low = math::fma(g, high, g - y);
  const double rest = math::fma(g, tail, math::fma(g_low, high, g_low) + y_low);
  return (y + math::fma(p, y + rest, rest)) * pow2_half(shifted);
}

/// Where erfc(x) may be below the normal numbers: beyond 26. NaN stays NaN.
CUOP_FN Doubt<double> doubt_of_erfc(double x) { return (bits_of(26.0) - bits_of(x)) & ~bits_of(x); }
CUOP_FN double fused_erfc(double x) {
  const double a = math::abs(x), square = a * a;
  const double p = tail_rest(a, 4.0, Fused<double>::kErfcTail);
  const double y = fused_tail(1.0, a, 1.5, p, square, math::fma(a, a, -square));
  const double tail = a > 26 ? 0.0 : y;
  return x < 0 ? 2 - tail : tail;
}

/// Beyond the polynomial's range on the left.
CUOP_FN Doubt<double> doubt_of_gelu(double x) { return doubt_beyond(x, 12.0) & bits_of(x); }
CUOP_FN double fused_gelu(double x) {
  const double a = math::abs(x), half = 0.5 * a, square = a * half;
  const double p = tail_rest(a, 5.0, Fused<double>::kNormalTail);
  const double y = fused_tail(half, a, 1.0, p, square, math::fma(a, half, -square));
  const double tail = a > 12.5 ? 0.0 : y;
  return math::copysign((x > 0 ? x : 0.0) - tail, x);
}

}  // namespace cuop::jit::accurate
