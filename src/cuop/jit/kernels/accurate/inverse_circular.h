// asin, acos and atan.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// asin(w) for w <= 1/2 as w.high + tail; beyond 1/2 of sqrt((1 - |x|) / 2), half of the angle that
/// is missing to a right one.
template <class T>
struct ArcArgument {
  T w, residual, tail;  ///< w^2 + residual is the square
};
template <class T>
CUOP_FN ArcArgument<T> arc_argument(T size, bool is_large) {
  const T z = chosen(is_large, (1 - size) * T(0.5), size * size);
  const T root = math::sqrt(z);
  const T w = chosen(is_large, root, size);
  return {w, chosen(is_large, residual(z, root, root), T(0)),
          w * z * polynomial(Coefficients<T>::kAsin, z)};
}

template <class T>
CUOP_FN T asin(T x) {
  using C = Coefficients<T>;
  const T size = math::abs(x);
  const bool is_large = size > T(0.5);
  const ArcArgument<T> a = arc_argument(size, is_large);
  const T factor = chosen(is_large, T(-2), T(1));
  const Sum<T> first = quick_sum(chosen(is_large, C::kHalfPi, T(0)), factor * a.w);
  // 3 - 4 w is near 1 / (2 w) where w is large enough to matter.
  const T tail = a.tail + a.residual * (3 - 4 * a.w);
  const T low = multiply_add(factor, tail, chosen(is_large, C::kHalfPiRest, T(0)));
  return math::copysign(first.high + (first.low + low), x);
}

template <class T>
CUOP_FN T acos(T x) {
  using C = Coefficients<T>;
  const T size = math::abs(x);
  const bool is_large = size > T(0.5);
  const ArcArgument<T> a = arc_argument(size, is_large);
  const bool is_positive = x > 0;
  const T near = chosen(is_positive, T(2), T(-2)), middle = chosen(is_positive, T(-1), T(1));
  const T factor = chosen(is_large, near, middle);
  const T far = chosen(is_positive, T(0), T(2)), quarters = chosen(is_large, far, T(1));
  const Sum<T> first = quick_sum(quarters * C::kHalfPi, factor * a.w);
  const T tail =
      a.tail + chosen(a.w > 0, a.residual * (T(0.5) / chosen(is_large, a.w, T(1))), T(0));
  const T low = multiply_add(factor, tail, quarters * C::kHalfPiRest);
  return first.high + (first.low + low);
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

/// q 13/16 + q P(q^2 - 1/2), where q is x up to 1; beyond, the negative reciprocal, and from pi/2.
/// P is small where q is nearly 1 and its rounding errors count most. Needs fused operations. Of
/// float below 0.99 ulp and monotone, tried on all arguments; of double below 1.05, tried on
/// millions.
template <class T>
CUOP_FN T fused_atan(T x) {
  using C = Coefficients<T>;
  constexpr T kMain = T(0.8125);
  const T size = math::abs(x);
  const bool is_far = size > 1;
  const T n = is_far ? T(-1) : size, d = is_far ? size : T(1), q = n / d;
  const T base = is_far ? C::kHalfPi : T(0), rest = is_far ? C::kHalfPiRest : T(0);
  const T p = polynomial(Fused<T>::kAtan, math::fma(q, q, T(-0.5)));
  const T main = math::fma(q, kMain, base), low = math::fma(q, kMain, base - main) + rest;
  return math::copysign(main + math::fma(q, p, low), x);
}

}  // namespace cuop::jit::accurate
