// erf, erfc and gelu: up to 1/2 by a polynomial, beyond by erfc(a) = exp(-a^2) F(t) / (1 + 2 a)
// with t = (a - 4) / (a + 4), where F is a polynomial (M. M. Shepherd and J. G. Laframboise, Math.
// Comp. 36, 1981).
#pragma once

#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

/// erfc(a) 2^-n for a >= 1/2, of a and its square in two parts.
template <class T>
CUOP_FN Power<T> erfc_parts(Sum<T> a, Sum<T> square) {
  using C = Coefficients<T>;
  constexpr T kMost = 28;
  const T size = a.high > kMost ? kMost : a.high;
  const T t = (size - 4) / (size + 4);
  const Sum<T> f =
      quick_sum(C::kErfcMiddle, multiply_add(t, polynomial(C::kErfc, t), C::kErfcMiddleRest));
  const Sum<T> d = two_sum(T(1), 2 * size);
  const Sum<T> scaled_value = quotient(f, Sum<T>{d.high, multiply_add(T(2), a.low, d.low)});
  const T low = -ExpRange<T>::kLow;
  const Power<T> e = exp_parts(-(square.high > low ? low : square.high), -square.low);
  const Sum<T> p = product(scaled_value, Sum<T>{e.high, e.low});
  return {p.high, p.low, e.shifted};
}

/// Below this n + kPower a result may be below the normal numbers.
template <class T>
inline constexpr T kSmallestPower = Format<T>::kPower + (sizeof(T) == 4 ? -110 : -1000);

/// The same with its power of two, which is 0 where it does not matter beside 1.
template <class T>
CUOP_FN Sum<T> beside_one(Power<T> p) {
  constexpr T kVanishes = Format<T>::kPower - 3 * Format<T>::kMantissa;
  const T half = pow2_half(p.shifted < kVanishes ? kVanishes : p.shifted);
  return {2 * half * p.high, 2 * half * p.low};
}

/// By a polynomial up to kErfNear; beyond, where erfc is small, without its compensation.
CUOP_FN double erf(double x) {
  using C = Coefficients<double>;
  const double size = math::abs(x), z = size * size, a = size > 6 ? 6.0 : size;
  double near;
  if constexpr (math::has_fast_fma) {
    near = multiply_add(size, polynomial(C::kErfWide, z), size);
  } else {
    // Rounded at every step it would not be monotone.
    const Sum<double> first = two_product(z, polynomial<1>(C::kErfWide, z));
    const Sum<double> sum = two_sum(C::kErfWide[0], first.high);
    near = size + (size * sum.high + size * (sum.low + first.low));
  }
  const double t = (a - 4) / (a + 4);
  const Sum<double> square = two_product(a, a);
  const double scaled_tail = polynomial(C::kErfTail, t);
  const double tail = (scaled_tail - scaled_tail * square.low) * quick_exp(-square.high);
  return math::copysign(size < C::kErfNear ? near : 1 - tail, x);
}

/// e^(-square) F / (1 + 2 a) for a >= 0 to the digits of a float, in double.
CUOP_FN double short_erfc(double a, double square) {
  using C = Coefficients<float>;
  using F = Format<double>;
  const double size = a > 11 ? 11 : a, limited_square = square > 121 ? 121 : square;
  const double d = size + 4, e = multiply_add(2.0, size, 1.0), inverse = 1 / (d * e);
  const double t = (size - 4) * e * inverse;
  const double shifted = multiply_add(limited_square, -Coefficients<double>::kInvLn2, F::kPower);
  const double r = multiply_add(F::kPower - shifted, Coefficients<double>::kLn2, -limited_square);
  const double power = multiply_add(r * r, polynomial(C::kShortExp, r), r) + 1;
  return polynomial(C::kShortErfc, t) * (d * inverse) * power * (2 * pow2_half(shifted));
}
CUOP_FN float erf(float x) {
  const double a = math::abs(x), z = a * a;
  const double near = multiply_add(a, polynomial(Coefficients<float>::kShortErf, z), a);
  const double y = a < 0.5 ? near : 1 - short_erfc(a, z);
  return math::copysign(static_cast<float>(y), x);
}
CUOP_FN float erfc(float x) {
  const double a = math::abs(x), tail = short_erfc(a, a * a);
  return static_cast<float>(x < 0 ? 2 - tail : tail);
}
CUOP_FN float gelu(float x) {
  const double size = math::abs(x), bounded = size > 20 ? 20 : size;
  const double tail =
      0.5 * short_erfc(bounded * Coefficients<double>::kRootHalf, 0.5 * bounded * bounded);
  const float y = static_cast<float>(x < 0 ? bounded * tail : size - bounded * tail);
  const float value = size < math::infinity ? y : x < 0 ? 0.0f : x;
  return math::copysign(value, x);
}

CUOP_FN double erfc(double x) {
  using T = double;
  using C = Coefficients<T>;
  const T size = math::abs(x), z = x * x;
  const Sum<T> one = quick_sum(T(1), -x);
  const T near = one.high + (one.low - x * polynomial(C::kErf, z));
  constexpr T kMost = 28;
  const T a = size > kMost ? kMost : size;
  const Power<T> p = erfc_parts(Sum<T>{a, T(0)}, two_product(a, a));
  const T right = scaled(p.high + p.low, p.shifted, p.shifted < kSmallestPower<T>);
  const Sum<T> tail = beside_one(p);
  const Sum<T> left = quick_sum(T(2), -tail.high);
  const T far = x > 0 ? right : left.high + (left.low - tail.low);
  return size < T(0.5) ? near : far;
}

/// x P(X <= x) = x erfc(-x / sqrt(2)) / 2.
CUOP_FN double gelu(double x) {
  using T = double;
  using C = Coefficients<T>;
  constexpr T kMost = 40;
  const T size = math::abs(x), bounded = size > kMost ? kMost : size;
  const Sum<T> a = product(Sum<T>{bounded, T(0)}, Sum<T>{C::kRootHalf, C::kRootHalfRest});
  const Sum<T> square = two_product(bounded, T(0.5) * bounded);
  const Power<T> p = erfc_parts(a, square);
  const Sum<T> tail = beside_one(p);  // 2 P(X > |x|)
  const Sum<T> far = quick_sum(T(2), -tail.high);
  const T polynomial_tail = a.high * polynomial(C::kErf, a.high * a.high);
  const Sum<T> inner = quick_sum(T(1), math::copysign(a.high, x));
  const bool is_near = a.high < T(0.5), is_left = x < 0;
  const T near_low = inner.low + math::copysign(a.low + polynomial_tail, x);
  const T high = choose(is_left, p.high, far.high);
  const T low = choose(is_left, p.low, far.low - tail.low);
  const T factor = x < -kMost ? -kMost : x;  // where the result is 0
  const Sum<T> half = two_product(factor, T(0.5) * choose(is_near, inner.high, high));
  const T value =
      half.high + multiply_add(factor, T(0.5) * choose(is_near, near_low, low), half.low);
  // Far on the left the power of two is still to come.
  const T left = scaled(value, p.shifted, p.shifted < kSmallestPower<T>);
  const T y = choose(is_left, choose(is_near, value, left), value);
  return math::copysign(choose(size < T(math::infinity), y, choose(is_left, T(0), x)), x);
}

}  // namespace cuop::jit::accurate
