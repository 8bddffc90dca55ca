// asinh, acosh, atanh and erf of floats on processors.
#pragma once

#include "cuop/jit/kernels/accurate/fused_logarithm.h"

namespace cuop::jit::accurate {

/// log((1 + f) 2^k) + low, where low is small.
CUOP_FN float log_and_low(float k, float f, float low) {
  using C = Coefficients<float>;
  const float tail = math::fma(f, f * polynomial(Fused<float>::kLog, f), low);
  const float first = k * C::kLn2High, high = first + f;
  return high + ((f - (high - first)) + math::fma(k, C::kLn2Low, tail));
}

/// log(v) + low.
CUOP_FN float log_and_low(Stage<float, 2> v) {
  const auto [k, f] = single_log_argument(v.values[0]);
  return log_and_low(k, f, v.values[1]);
}

/// Up to 1/2 by a polynomial, beyond log(a + root) with root^2 = a^2 + 1 and root - a = 1 / (a +
/// root). Needs fused operations.
CUOP_FN Stage<float, 2> fused_asinh_argument(float x) {
  const float a = math::abs(x);
  const float square = math::fma(a, a, 1.0f), square_low = math::fma(a, a, 1 - square);
  const float root = math::sqrt(square), half_inverse = 0.5f / root;
  const float root_low = (math::fma(-root, root, square) + square_low) * half_inverse;
  const float v = root + a, low = (a - (v - root)) + root_low;
  return {{v, low * chosen(a < 4, root - a, half_inverse)}};
}
CUOP_FN float fused_asinh(float x, Stage<float, 2> argument) {
  const float a = math::abs(x), z = x * x;
  const float near = math::fma(a * z, polynomial(Fused<float>::kAsinh, z), a);
  return math::copysign(a < 0.5f ? near : log_and_low(argument), x);
}

/// With b = x - 1 log(1 + (b + root)) where that is less than log(sqrt(2)), else log(x + root), of
/// which the reciprocal is x - root: the logarithm's k, its 1 + f or 1 + f = w, and what that
/// lacks.
CUOP_FN Stage<float, 3> fused_acosh_argument(float x) {
  const float b = x - 1;
  const bool is_near = b < 2;
  const float m = chosen(is_near, b, x), added = chosen(is_near, b + b, -1.0f);
  const float square = math::fma(m, m, added), square_low = math::fma(m, m, added - square);
  const float root = math::sqrt(square), inverse = 0.5f / chosen(root > 0, root, 1.0f);
  const float root_low = (math::fma(-root, root, square) + square_low) * inverse;
  const float v = x + root, v_low = (root - (v - x)) + root_low;
  const auto [k, f] = single_log_argument(v);
  const float w = root + b, w_low = (b - (w - root)) + root_low;
  const bool is_first = k == 0;
  const float g = chosen(is_first, w, f);
  const float g_low = chosen(is_first, w_low * math::fma(w, math::fma(w, 0.7f, -1.0f), 1.0f),
                             v_low * chosen(x < 4, x - root, inverse));
  return {{k, g, g_low}};
}
CUOP_FN float fused_acosh(Stage<float, 3> argument) {
  return log_and_low(argument.values[0], argument.values[1], argument.values[2]);
}

/// Up to 1/2 by a polynomial, beyond half the logarithm of the quotient.
CUOP_FN Stage<float, 2> fused_atanh_argument(float x) {
  const float a = math::abs(x);
  const float n = 1 + a, d = 1 - a, inverse = 1 / d, q = n * inverse;
  const float rest = math::fma(-q, d, n) + (a - (n - 1));  // by d what q lacks
  return {{q, rest * math::fma(n, -1.0f / 3, 7.0f / 6)}};
}
/// That logarithm is at least log(3), beside which the roundings of f's share and what the one
/// constant lacks are small.
CUOP_FN float fused_atanh(float x, Stage<float, 2> argument) {
  using C = Fused<float>;
  const auto [quotient, low] = argument.values;
  const auto [k, f] = single_log_argument(quotient);
  const float share = f + math::fma(f, f * polynomial(C::kLog, f), low);
  const float far = 0.5f * math::fma(k, Coefficients<float>::kLn2, share);
  const float a = math::abs(x), z = x * x;
  const float near = math::fma(a * z, polynomial(C::kAtanh, z), a);
  return math::copysign(a < 0.5f ? near : far, x);
}

/// x + x P(x^2 - 1/2) up to 1, beyond 1 - Q(|x| - 5/4)^4, where Q is the fourth root of erfc, with
/// what its last sum lost. Needs fused operations; below 1 ulp and monotone, tried on all
/// arguments.
CUOP_FN float fused_erf(float x) {
  using C = Fused<float>;
  const float size = math::abs(x), few = size > 1.8f ? 8.0f : 0.0f;
  const float near = math::fma(size, horner(C::kErfNear, math::fma(size, size, -0.5f)), size);
  // With fewer digits, so that neighbours are further apart than rounding errors.
  const float t = (at_most(size, 3.95f) + few) - (few + 1.25f);
  const float rest = polynomial<1>(C::kErfFar, t);
  const float root = math::fma(rest, t, C::kErfFar[0]);
  const float low = math::fma(rest, t, C::kErfFar[0] - root);
  const float square = math::fma(root, root, (root + root) * low);
  return math::copysign(size < 1 ? near : math::fma(-square, square, 1.0f), x);
}

/// x + x P(x^2) up to 1.2, beyond 1 - Q(|x| - 2)^4, where Q is the fourth root of erfc; in double.
/// Below 0.6 ulp and monotone, tried on all arguments.
CUOP_FN float single_erf(float x) {
  using C = Coefficients<float>;
  const float size = math::abs(x);
  const double a = size, root = polynomial(C::kErfFar, at_most(size, 3.95f) - 2.0), q = root * root;
  const double near = a + a * polynomial(C::kErfNear, a * a);
  return math::copysign(static_cast<float>(size < 1.2f ? near : 1 - q * q), x);
}

}  // namespace cuop::jit::accurate
