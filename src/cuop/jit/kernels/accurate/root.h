// cbrt and the reciprocal of the square root.
#pragma once

#include "cuop/jit/kernels/accurate/logarithm.h"

namespace cuop::jit::accurate {

template <class T>
CUOP_FN T quick_rsqrt(T x) {
  const T root = math::sqrt(x), y = 1 / root;
  if constexpr (sizeof(T) == 8) {
    return y;  // within 1.5 ulp as it is
  } else {
    // root + rest / (2 root) is the root and y + y * (1 - y * root) its reciprocal.
    const T rest = residual(x, root, root), error = residual(T(1), y, root);
    return multiply_add(y, multiply_add(T(-0.5) * rest, y * y, error), y);
  }
}
/// Of floats where the square of the root of x, or of its reciprocal, may leave the normal numbers.
CUOP_FN Doubt<float> doubt_of_rsqrt(float x) { return doubt_outside(x, 0x1p-60f, 0x1p120f); }
CUOP_FN Doubt<double> doubt_of_rsqrt(double) { return 0; }
CUOP_FN float rsqrt(float x) { return static_cast<float>(1 / math::sqrt(static_cast<double>(x))); }
CUOP_FN double rsqrt(double x) { return quick_rsqrt(x); }

/// x = 8^n c with c in [sqrt(1/8), sqrt(8)); the reciprocal root of c by a polynomial and a step of
/// third order, then c^(1/3) from the upper half of its digits, whose cube is exact.
template <class T>
CUOP_FN T cbrt(T x) {
  using C = Coefficients<T>;
  using F = Format<T>;
  constexpr T kLift = sizeof(T) == 4 ? T(0x1p24) : T(0x1p54);
  constexpr T kDrop = sizeof(T) == 4 ? T(0x1p-8) : T(0x1p-18);
  const T size = math::abs(x);
  const bool is_small = size < F::kLeastNormal;
  const LogArgument<T> a = split(is_small ? size * kLift : size);
  const T shifted = multiply_add(a.k, T(1.0 / 3), F::kPower), n = shifted - F::kPower;
  const T rest = multiply_add(n, T(-3), a.k);  // -1, 0 or 1
  const T c = a.m * (rest > 0 ? T(2) : rest < 0 ? T(0.5) : T(1));
  const T first = polynomial(C::kCbrt, a.m) * (rest > 0   ? C::kCbrtHalf
                                               : rest < 0 ? C::kCbrtTwo
                                                          : T(1));
  const T error = 1 - c * first * first * first;
  const T inverse = multiply_add(first * error, multiply_add(error, T(2.0 / 9), T(1.0 / 3)), first);
  const T root = upper_half(c * inverse * inverse);
  const T step = residual(c, root * root, root) * (inverse * inverse * T(1.0 / 3));
  const T y = root + (step + step * step * inverse);
  const T power = pow2_half(shifted);
  const T value = math::copysign((y + y) * power * (is_small ? kDrop : T(1)), x);
  return size < T(math::infinity) && x != 0 ? value : x;
}

}  // namespace cuop::jit::accurate
