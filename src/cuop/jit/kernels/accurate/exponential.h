// exp and its relatives: x = n ln 2 + r with |r| <= ln(2)/2, a polynomial in r, and 2^n.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// e^x is 0 below kLow, also after a factor of up to a thousand, infinite above kHigh, and may be
/// below the normal numbers under kSmall.
template <class T>
struct ExpRange;
template <>
struct ExpRange<float> {
  static constexpr float kLow = -120, kSmall = -78, kHigh = 89, kCoshHigh = 90, kOne = 10;
};
template <>
struct ExpRange<double> {
  static constexpr double kLow = -780, kSmall = -698, kHigh = 710, kCoshHigh = 711, kOne = 22;
};

/// x = n ln 2 + r + low; `shifted` is n + kPower.
template <class T>
struct ExpArgument {
  T n, shifted, r, low;
};

template <class T>
CUOP_FN ExpArgument<T> reduced_exp(T x, T x_low = 0) {
  using C = Coefficients<T>;
  const T shifted = multiply_add(x, C::kInvLn2, Format<T>::kPower);
  const T n = shifted - Format<T>::kPower;
  const T high = multiply_add(n, -C::kLn2High, x);  // exact: the constant has few digits
  const T low = x_low - n * C::kLn2Low;
  const T r = high + low;
  return {n, shifted, r, low - (r - high)};
}

template <class T>
CUOP_FN T limited(T x, T low, T high) {
  const T below = x > high ? high : x;  // NaN stays
  return below < low ? low : below;
}

template <class T>
CUOP_FN T exp(T x) {
  using R = ExpRange<T>;
  const ExpArgument<T> a = reduced_exp(limited(x, R::kLow, R::kHigh));
  const T tail = multiply_add(a.r * a.r, polynomial(Coefficients<T>::kExp, a.r), a.low);
  return scaled(1 + (a.r + tail), a.shifted, x < R::kSmall);
}

template <class T>
CUOP_FN T exp2(T x) {
  using C = Coefficients<T>;
  constexpr T kLow = sizeof(T) == 4 ? T(-170) : T(-1100), kHigh = sizeof(T) == 4 ? T(129) : T(1025);
  constexpr T kSmall = sizeof(T) == 4 ? T(-124) : T(-1020);
  const T clamped = limited(x, kLow, kHigh);
  const T shifted = clamped + Format<T>::kPower;
  const T r = clamped - (shifted - Format<T>::kPower);
  const T tail = multiply_add(r * r, polynomial(C::kExp2, r), r * C::kLn2Rest);
  return scaled(1 + multiply_add(r, C::kLn2, tail), shifted, x < kSmall);
}

/// e^x as (high + low) 2^n for x between kLow and kHigh.
template <class T>
struct Power {
  T high, low, shifted;
};
template <class T>
CUOP_FN Power<T> exp_parts(T x, T x_low = 0) {
  const ExpArgument<T> a = reduced_exp(x, x_low);
  const T tail = multiply_add(a.r * a.r, polynomial(Coefficients<T>::kExp, a.r), a.low);
  const Sum<T> sum = quick_sum(T(1), a.r);
  const Sum<T> result = quick_sum(sum.high, sum.low + tail);
  return {result.high, result.low, a.shifted};
}

template <class T>
CUOP_FN T expm1(T x) {
  using R = ExpRange<T>;
  constexpr T kMinusOne = sizeof(T) == 4 ? T(-20) : T(-40);
  const ExpArgument<T> a = reduced_exp(limited(x, kMinusOne, R::kHigh));
  const T half = pow2_half(a.shifted), rest = half - T(0.5);
  const T tail = multiply_add(a.r * a.r, polynomial(Coefficients<T>::kExp, a.r), a.low);
  const Sum<T> sum = quick_sum(rest, half * a.r);
  const T low = sum.low + ((half - rest) - T(0.5));
  const T y = sum.high + multiply_add(half, tail, low);
  return math::abs(x) < T(0x1p-60) ? x : y + y;
}

/// sinh(x) = 2^(n-1) sine and cosh(x) = 2^(n-1) cosine for x >= 0: with x = n ln 2 + r and u =
/// 4^-n, sinh x = 2^(n-1) ((1 - u) cosh r + (1 + u) sinh r), and cosh x with the signs exchanged.
template <class T>
struct Hyperbolic {
  Sum<T> sine, cosine;
  T shifted;
};
template <class T>
CUOP_FN Hyperbolic<T> hyperbolic(T x) {
  using C = Coefficients<T>;
  constexpr T kMost = sizeof(T) == 4 ? T(30) : T(60);
  const ExpArgument<T> a = reduced_exp(x);
  const T n = a.n > kMost ? kMost : a.n;
  const T half_u = pow2_half(n * -2 + Format<T>::kPower), u = half_u + half_u;
  const T difference = 1 - u, difference_low = (1 - difference) - u;
  const T sum = 1 + u, sum_low = u - (sum - 1);
  const T z = a.r * a.r;
  const T even = z * polynomial(C::kCosh, z);
  const T odd = multiply_add(a.r * z, polynomial(C::kSinh, z), a.low);
  const Sum<T> first = quick_sum(a.r, a.r * u);
  const Sum<T> sine = quick_sum(difference, first.high);
  const T sine_low =
      sine.low + (first.low + difference_low + multiply_add(sum, odd, difference * even));
  const Sum<T> cosine = quick_sum(sum, a.r * difference);
  const T cosine_low = cosine.low + (sum_low + multiply_add(difference, odd, sum * even));
  return {quick_sum(sine.high, sine_low), quick_sum(cosine.high, cosine_low), a.shifted};
}

template <class T>
CUOP_FN T sinh(T x) {
  const T size = math::abs(x);
  const Hyperbolic<T> h = hyperbolic(size > ExpRange<T>::kCoshHigh ? ExpRange<T>::kCoshHigh : size);
  const T y = pow2_half(h.shifted - 1) * (h.sine.high + h.sine.low);
  return size < T(0x1p-30) ? x : math::copysign(y + y, x);
}
template <class T>
CUOP_FN T cosh(T x) {
  const T size = math::abs(x);
  const Hyperbolic<T> h = hyperbolic(size > ExpRange<T>::kCoshHigh ? ExpRange<T>::kCoshHigh : size);
  const T y = pow2_half(h.shifted - 1) * (h.cosine.high + h.cosine.low);
  return y + y;
}
/// The parts of the logistic function: (q.high + q.low) 2^n, n = 0 unless x < 0.
template <class T>
CUOP_FN Power<T> logistic(T x, T x_low = 0) {
  const T size = -math::abs(x), size_low = x < 0 ? x_low : -x_low;
  const Power<T> e = exp_parts(size < ExpRange<T>::kLow ? ExpRange<T>::kLow : size, size_low);
  constexpr T kVanishes = Format<T>::kPower - 2 * Format<T>::kMantissa;
  const T half = pow2_half(e.shifted < kVanishes ? kVanishes : e.shifted), power = half + half;
  const Sum<T> divisor = quick_sum(T(1), power * e.high);
  const bool is_negative = x < 0;
  const Sum<T> q = quotient(Sum<T>{is_negative ? e.high : T(1), is_negative ? e.low : T(0)},
                            Sum<T>{divisor.high, multiply_add(power, e.low, divisor.low)});
  return {q.high, q.low, is_negative ? e.shifted : Format<T>::kPower};
}

template <class T>
CUOP_FN T sigmoid(T x) {
  const Power<T> s = logistic(x);
  return scaled(s.high + s.low, s.shifted, x < ExpRange<T>::kSmall);
}

/// x times the logistic function of y, which has the sign of x and is -inf at x = -inf.
template <class T>
CUOP_FN T times_logistic(T x, T y, T y_low) {
  const Power<T> s = logistic(y, y_low);
  const T factor = x < ExpRange<T>::kLow ? ExpRange<T>::kLow : x;  // where the result is 0
  const Sum<T> p = two_product(factor, s.high);
  const T value = p.high + multiply_add(factor, s.low, p.low);
  const T y_scaled = y < 0 ? scaled(value, s.shifted, y < ExpRange<T>::kSmall) : value;
  return math::copysign(math::abs(x) < T(math::infinity) ? y_scaled : x < 0 ? T(0) : x, x);
}

template <class T>
CUOP_FN T silu(T x) {
  return times_logistic(x, x, T(0));
}

/// x times the logistic function of 2 sqrt(2/pi) (x + 0.044715 x^3), whose rounding errors the
/// exponential function would enlarge up to 745 times.
template <class T>
CUOP_FN T gelu_tanh(T x) {
  using C = Coefficients<T>;
  // Beyond kMost the answer is x or 0; nothing overflows on the way.
  constexpr T kMost = 64;
  const T bounded = limited(x, -kMost, kMost);
  const Sum<T> cubic =
      product(two_product(bounded, bounded), Sum<T>{C::kGeluCubic, C::kGeluCubicRest});
  const Sum<T> sum = two_sum(C::kGeluLinear, cubic.high);
  const Sum<T> inner =
      product(Sum<T>{bounded, T(0)}, Sum<T>{sum.high, sum.low + (cubic.low + C::kGeluLinearRest)});
  return times_logistic(x, inner.high, inner.low);
}

}  // namespace cuop::jit::accurate
