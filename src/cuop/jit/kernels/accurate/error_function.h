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

/// x + x P(x^2 - 1/2) up to 1; beyond, 1 - Q(|x| - 5/4)^4 with what the last sum of Q lost. Both
/// are centred where rounding errors count most: their terms are small there.
CUOP_FN double erf(double x) {
  using C = Coefficients<double>;
  const double size = math::abs(x);
  const double p = polynomial(C::kErfNear, multiply_add(size, size, -0.5));
  const double near = multiply_add(size, p, size);
  // Beyond 1.9 with fewer digits, so that neighbours are further apart than rounding errors.
  const double few = size > 1.9 ? 16.0 : 0.0, t = (at_most(size, 5.92) + few) - (few + 1.25);
  const double slope = polynomial<1>(C::kErfFar, t), root = multiply_add(slope, t, C::kErfFar[0]);
  const double low = multiply_add(slope, t, C::kErfFar[0] - root);
  const double square = multiply_add(root, root, (root + root) * low);
  return math::copysign(size < 1 ? near : multiply_add(-square, square, 1.0), x);
}

/// erfc(a) for a >= 0 to the digits of a float: the 64th power of a polynomial, whose rounding
/// errors in double do not matter yet then.
CUOP_FN double short_erfc(double a) {
  // With fewer digits, so that neighbours are further apart than rounding errors.
  const double t = ((a > 10.25 ? 10.25 : a) + 384.0) - 389.125;
  double power = polynomial(Coefficients<float>::kErfcRoot, t);
  for (int k = 0; k < 6; ++k) power *= power;
  return power;
}
CUOP_FN float erf(float x) {
  const double a = math::abs(x), z = a * a;
  const double near = multiply_add(a, polynomial(Coefficients<float>::kShortErf, z), a);
  const double y = a < 0.5 ? near : 1 - short_erfc(a);
  return math::copysign(static_cast<float>(y), x);
}
CUOP_FN float erfc(float x) {
  const double a = math::abs(x), tail = short_erfc(a);
  return static_cast<float>((x < 0 ? 2.0 : 0.0) + (x < 0 ? -tail : tail));
}
CUOP_FN float gelu(float x) {
  const double size = math::abs(x), half = size > 14.5 ? 7.25 : 0.5 * size;
  const double tail = half * short_erfc(size * Coefficients<double>::kRootHalf);
  return math::copysign(static_cast<float>((x > 0 ? size : 0.0) - tail), x);
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
