// tanh and erf of floats on processors.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// x + x^3 P(x^2) up to 0.9, beyond 1 - 2 / (e^(2 |x|) + 1), whose second term is less than 0.29.
/// Needs fused operations; below 1 ulp and monotone, over all arguments.
CUOP_FN float fused_tanh(float x) {
  using C = Coefficients<float>;
  constexpr float kScale = Format<float>::kPower + 1;
  const float size = math::abs(x), z = x * x, bounded = size > 10 ? 10 : size;
  const float shifted = math::fma(bounded, 2 * C::kInvLn2, kScale), n = shifted - kScale;
  const float r = math::fma(n, -C::kLn2Low, math::fma(n, -C::kLn2High, bounded + bounded));
  const float power = pow2_half(shifted);
  const float less = math::fma(r * r, polynomial(Fused<float>::kExp, r), r);
  const float far = 1 - 2 / (math::fma(less, power, power) + 1);
  const float near = math::fma(size * z, polynomial(Fused<float>::kTanh, z), size);
  return math::copysign(size < 0.9f ? near : far, x);
}

/// x + x P(x^2) up to 1.2, beyond 1 - Q(|x| - 2)^4, where Q is the fourth root of erfc; in double,
/// and one polynomial whose coefficients are chosen. Below 0.6 ulp and monotone, over all
/// arguments.
template <int First>
CUOP_FN double erf_polynomial(bool is_near, double t) {
  using C = Fused<float>;
  const double coefficient = is_near ? C::kErfNear[First] : C::kErfFar[First];
  if constexpr (First + 1 == sizeof(C::kErfNear) / sizeof(double)) {
    return coefficient;
  } else {
    return multiply_add(erf_polynomial<First + 1>(is_near, t), t, coefficient);
  }
}
CUOP_FN float single_erf(float x) {
  const double size = math::abs(x), bounded = size > 3.95 ? 3.95 : size;
  const bool is_near = size < 1.2;
  const double p = erf_polynomial<0>(is_near, is_near ? size * size : bounded - 2), q = p * p;
  const double y = is_near ? multiply_add(size, p, size) : multiply_add(-q, q, 1.0);
  return math::copysign(static_cast<float>(y), x);
}

}  // namespace cuop::jit::accurate
