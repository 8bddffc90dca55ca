// erfc and gelu of float where there are fused operations: n / (1 + slope a) (1 + p) e^-s, where
// slope makes p small. Below 0.98 ulp, and erfc monotone, tried on all arguments.
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
  constexpr int32_t kLift = 64 << 23, kLeast = 65 << 23;
  const auto normal = static_cast<int32_t>(bits_of(x)) - kLift;
  const auto small = static_cast<int32_t>(bits_of(x + 0x1p-62f)) - kLeast;
  return from_bits<float>(static_cast<uint32_t>(normal > small ? normal : small));
}

/// Of all x but NaN.
CUOP_FN float fused_erfc(float x) {
  using C = Fused<float>;
  const float a = at_most(math::abs(x), 10.1f), square = a * a;  // erfc(10.06) rounds to 0
  const float p = fused_tail_rest(a, 3.0f, C::kErfcTail);
  const float tail = without_lift(lifted_tail(1.0f, a, 1.5f, p, square, math::fma(a, a, -square)));
  return chosen(x < 0, 2 - tail, tail);
}

/// x P(X <= x) by the tail P(X > |x|).
CUOP_FN float fused_gelu(float x) {
  using C = Fused<float>;
  const float size = math::abs(x), a = at_most(size, 14.5f), half = 0.5f * a, square = a * half;
  const float p = fused_tail_rest(a, 5.0f, C::kNormalTail);
  const float lifted = lifted_tail(half, a, 1.0625f, p, square, math::fma(a, half, -square));
  return math::copysign(chosen(x > 0, size, 0.0f) - 0x1p-64f * lifted, x);
}

}  // namespace cuop::jit::accurate
