// asin, acos and atan.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Whether |x| is more than 1/2: then both functions take the half of the angle that is missing to
/// a right one.
template <class T>
CUOP_FN bool is_large_sine(T x) {
  return math::abs(x) > T(0.5);
}
/// The square of |x|, or of the sine of that half, and its root: beyond 1/2 the second one is less.
template <class T>
CUOP_FN Stage<T, 2> arc_parts(T x) {
  const T size = math::abs(x);
  const T square = size * size, half = multiply_add(size, T(-0.5), T(0.5));
  const T z = square < half ? square : half;
  return {{z, math::sqrt(z)}};
}

/// w + w^3 P(w^2), beyond 1/2 from pi/2 with w = -2 sqrt(square). What the root of a float is
/// rounded by is made good nearly; up to 1/2 this does not matter. Of double it may stay: below 1.2
/// ulp, and monotone since every step is.
template <class T>
CUOP_FN T asin(T x, Stage<T, 2> parts) {
  using C = Coefficients<T>;
  const bool is_large = is_large_sine(x);
  const auto [z, root] = parts.values;
  const T w = chosen(is_large, root * -2, math::abs(x));
  const T base = chosen(is_large, C::kHalfPi, T(0)), high = base + w;
  T low = chosen(is_large, C::kHalfPiRest, T(0)) + (w - (high - base));
  if constexpr (sizeof(T) == 4) low = multiply_add(residual(z, root, root), T(-1.2), low);
  return math::copysign(high + multiply_add(w * z, polynomial(C::kAsin, z), low), x);
}
template <class T>
CUOP_FN T asin(T x) {
  return asin(x, arc_parts(x));
}

/// From 0, pi/2 or pi, w having the sign of what is added; its rounding error as for asin, with
/// 1 / w from the difference of the bits.
template <class T>
CUOP_FN T acos(T x, Stage<T, 2> parts) {
  using C = Coefficients<T>;
  constexpr BitsOf<T> kSign = BitsOf<T>(1) << (8 * sizeof(T) - 1);
  const bool is_large = is_large_sine(x), is_negative = x < 0;
  const auto [z, root] = parts.values;
  const BitsOf<T> sign = (bits_of(x) & kSign) ^ bits_of(chosen(is_large, T(0), T(-0.0)));
  const T w = from_bits<T>(bits_of(chosen(is_large, root + root, math::abs(x))) ^ sign);
  const T far = chosen(is_negative, 2 * C::kHalfPi, T(0));
  const T far_rest = chosen(is_negative, 2 * C::kHalfPiRest, T(0));
  const T base = chosen(is_large, far, C::kHalfPi), high = base + w;
  T low = chosen(is_large, far_rest, C::kHalfPiRest) + (w - (high - base));
  if constexpr (sizeof(T) == 4) {
    low = multiply_add(residual(z, root, root), from_bits<T>(0x7ef127ea - bits_of(w)), low);
  }
  return high + multiply_add(w * z, polynomial(C::kAsin, z), low);
}
template <class T>
CUOP_FN T acos(T x) {
  return acos(x, arc_parts(x));
}

/// By tan(y - c) = (x - tan c) / (1 + x tan c), c = 0, pi/4 or pi/2.
template <class T>
CUOP_FN T atan(T x) {
  using C = Coefficients<T>;
  constexpr T kNear = T(0.41421356), kFar = T(2.4142136), kMost = T(0x1p60);
  const T size = math::abs(x), a = at_most(size, kMost);
  const bool is_mid = a > kNear, is_far = a > kFar;
  const Sum<T> below = quick_sum(T(-1), a), above = quick_sum(T(1), a);
  const T n = chosen(is_mid, below.high, a), n_low = chosen(is_mid, below.low, T(0));
  const T d = chosen(is_mid, above.high, T(1)), d_low = chosen(is_mid, above.low, T(0));
  const Sum<T> q = quotient(Sum<T>{chosen(is_far, T(-1), n), chosen(is_far, T(0), n_low)},
                            Sum<T>{chosen(is_far, a, d), chosen(is_far, T(0), d_low)});
  const T z = q.high * q.high;
  const T eighths = chosen(is_far, T(1), chosen(is_mid, T(0.5), T(0)));
  const Sum<T> first = quick_sum(eighths * C::kHalfPi, q.high);
  const T tail = multiply_add(q.high * z, polynomial(C::kAtan, z), q.low);
  const T low = first.low + multiply_add(eighths, C::kHalfPiRest, tail);
  return math::copysign(first.high + low, x);
}

/// q is |x| up to 1; beyond, the negative reciprocal.
CUOP_FN Stage<float, 1> fused_atan_quotient(float x) {
  const float size = math::abs(x);
  const bool is_far = size > 1;
  return {{(is_far ? -1.0f : size) / (is_far ? size : 1.0f)}};
}
/// q 13/16 + q P(q^2 - 1/2), beyond 1 from pi/2. P is small where q is nearly 1 and its rounding
/// errors count most. Needs fused operations. Below 0.99 ulp and monotone, tried on all arguments.
CUOP_FN float fused_atan(float x, Stage<float, 1> stage) {
  using C = Coefficients<float>;
  constexpr float kMain = 0.8125f;
  const float q = stage.values[0];
  // All bits where q is negative.
  const auto far = static_cast<BitsOf<float>>(static_cast<int32_t>(bits_of(q)) >> 31);
  const float base = from_bits<float>(far & bits_of(C::kHalfPi));
  const float rest = from_bits<float>(far & bits_of(C::kHalfPiRest));
  const float p = polynomial(Fused<float>::kAtan, math::fma(q, q, -0.5f));
  const float main = math::fma(q, kMain, base), low = math::fma(q, kMain, base - main) + rest;
  return math::copysign(main + math::fma(q, p, low), x);
}

/// The tangent of the distance to 0, pi/4 or pi/2: each has a third of the angles. What x + 1 loses
/// is left out, less than an ulp of a number below 0.3.
inline constexpr double kAtanNear = 0.5464, kAtanFar = 1.8302;
CUOP_FN Stage<double, 1> fused_atan_quotient(double x) {
  const double size = math::abs(x);
  const bool is_middle = size > kAtanNear, is_far = size > kAtanFar;
  const double n = chosen(is_far, -1.0, chosen(is_middle, size - 1, size));
  const double d = chosen(is_far, size, chosen(is_middle, size + 1, 1.0));
  return {{n / d}};
}
/// q + q^3 P(q^2) from there. Below 1.05 ulp, tried on millions.
CUOP_FN double fused_atan(double x, Stage<double, 1> stage) {
  using C = Coefficients<double>;
  const double size = math::abs(x), q = stage.values[0], z = q * q;
  const bool is_middle = size > kAtanNear, is_far = size > kAtanFar;
  const double base = chosen(is_far, C::kHalfPi, chosen(is_middle, C::kHalfPi / 2, 0.0));
  const double rest = chosen(is_far, C::kHalfPiRest, chosen(is_middle, C::kHalfPiRest / 2, 0.0));
  const double high = base + q, low = (q - (high - base)) + rest;
  return math::copysign(high + math::fma(q * z, polynomial(Fused<double>::kAtan, z), low), x);
}

}  // namespace cuop::jit::accurate
