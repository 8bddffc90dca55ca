// log and its relatives: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and
// log(1 + f) = 2 atanh(s) with s = f / (2 + f), in the form f - f^2/2 + s (f^2/2 + R(s^2)) where no
// error of the quotient reaches the larger terms.
#pragma once

#include "cuop/jit/kernels/accurate/exponential.h"

namespace cuop::jit::accurate {

/// The parts of a positive normal number; `inverse` is 2^-k where k < 1023.
template <class T>
struct LogArgument {
  T k, m, inverse;
};
template <class T>
CUOP_FN LogArgument<T> split(T x) {
  using F = Format<T>;
  using Bits = BitsOf<T>;
  constexpr Bits kOne = static_cast<Bits>(F::kBias) << F::kMantissa;
  constexpr T kTwoToMantissa = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  const Bits shifted = bits_of(x) + (kOne - F::kRootHalf);
  const Bits exponent = shifted >> F::kMantissa;
  const Bits whole = __builtin_bit_cast(Bits, kTwoToMantissa) | exponent;
  const T k = from_bits<T>(whole) - (kTwoToMantissa + T(F::kBias));
  const T m = from_bits<T>((shifted & F::kMantissaMask) + F::kRootHalf);
  return {k, m, from_bits<T>((Bits(2 * F::kBias) - exponent) << F::kMantissa)};
}

/// log(1 + f) as high + low; the high half of f alone where it is to be multiplied exactly.
template <class T>
CUOP_FN T log_tail(T f, T s) {
  const T z = s * s;
  return s * multiply_add(z, polynomial(Coefficients<T>::kLog, z), T(0.5) * f * f);
}
template <class T>
CUOP_FN T log_tail(T f) {
  return log_tail(f, f / (2 + f));
}

/// k ln 2 + log(1 + f + f_low), f_low far below f or 0.
template <class T>
CUOP_FN Sum<T> log_sum(T k, T f, T f_low) {
  using C = Coefficients<T>;
  const Sum<T> square = two_product(f, T(0.5) * f);
  const Sum<T> first = quick_sum(k * C::kLn2High, f);
  const Sum<T> second = two_sum(first.high, -square.high);
  const T slope = 1 - f + f * f;  // of the logarithm, near enough for f_low
  const T low = multiply_add(k, C::kLn2Low, multiply_add(f_low, slope, log_tail(f)));
  return quick_sum(second.high, low + (second.low + (first.low - square.low)));
}

template <class T>
struct PositiveNumber {
  T value, k;
};
/// A subnormal number as a normal one times 2^k.
template <class T>
CUOP_FN PositiveNumber<T> normalized(T x) {
  constexpr T kLift = sizeof(T) == 4 ? T(0x1p32) : T(0x1p64);
  const bool is_small = x < Format<T>::kLeastNormal;
  return {is_small ? x * kLift : x, is_small ? T(sizeof(T) == 4 ? -32 : -64) : T(0)};
}

/// y where x is positive and finite; else what the logarithm is there.
template <class T>
CUOP_FN T log_result(T x, T y) {
  const T below = x == 0 ? -T(math::infinity) : T(math::nan);
  const T finite = x > 0 ? y : below;
  return x == T(math::infinity) ? x : finite;
}

/// Of a positive normal number.
template <class T>
CUOP_FN T quick_log(T x, T k_lift = 0) {
  using C = Coefficients<T>;
  const LogArgument<T> a = split(x);
  const T k = a.k + k_lift, f = a.m - 1;
  const Sum<T> first = quick_sum(k * C::kLn2High, f);
  const T low = multiply_add(k, C::kLn2Low, first.low) + (log_tail(f) - T(0.5) * f * f);
  return first.high + low;
}
template <class T>
CUOP_FN T log(T x) {
  const PositiveNumber<T> number = normalized(x);
  return log_result(x, quick_log(number.value, number.k));
}
/// Of all but positive normal numbers.
template <class T>
CUOP_FN Doubt<T> doubt_of_logs(T x) {
  return doubt_outside(x, Format<T>::kLeastNormal, Format<T>::kMost);
}

/// log(1 + f) / log(base) + (k + k_lift) log_base(2), the factor and that logarithm in two parts.
template <class T>
CUOP_FN T quick_log_of_base(T x, T k_lift, Sum<T> factor, Sum<T> log_of_2) {
  const LogArgument<T> a = split(x);
  const T k = a.k + k_lift, f = a.m - 1, half_square = T(0.5) * f * f;
  const T high = upper_half(f - half_square);
  const T low = ((f - high) - half_square) + log_tail(f);
  const T tail = multiply_add(high + low, factor.low, low * factor.high);
  const Sum<T> sum = quick_sum(k * log_of_2.high, high * factor.high);
  return sum.high + (sum.low + multiply_add(k, log_of_2.low, tail));
}
template <class T>
CUOP_FN T quick_log2(T x, T k_lift = 0) {
  using C = Coefficients<T>;
  return quick_log_of_base(x, k_lift, Sum<T>{C::kInvLn2High, C::kInvLn2Low}, Sum<T>{T(1), T(0)});
}
template <class T>
CUOP_FN T quick_log10(T x, T k_lift = 0) {
  using C = Coefficients<T>;
  return quick_log_of_base(x, k_lift, Sum<T>{C::kInvLn10High, C::kInvLn10Low},
                           Sum<T>{C::kLog10Of2High, C::kLog10Of2Low});
}
template <class T>
CUOP_FN T log2(T x) {
  const PositiveNumber<T> number = normalized(x);
  return log_result(x, quick_log2(number.value, number.k));
}
template <class T>
CUOP_FN T log10(T x) {
  const PositiveNumber<T> number = normalized(x);
  return log_result(x, quick_log10(number.value, number.k));
}

/// log(1 + v) + k ln 2 for v > -1, v.low at most an ulp of v.high.
template <class T>
CUOP_FN Sum<T> log1p_sum(Sum<T> v, T k = 0) {
  const Sum<T> u = two_sum(T(1), v.high);
  const Sum<T> rest = quick_sum(u.low, v.low);
  const LogArgument<T> a = split(u.high);
  const T inverse = u.high < T(0x1p60) ? a.inverse : T(0);
  const Sum<T> f = quick_sum(a.m - 1, rest.high * inverse);
  return log_sum(a.k + k, f.high, f.low + rest.low * inverse);
}

/// 1 + x + x_low = 2^k (1 + f + f_low), x between -1 and 2^60: k, f, f_low and s = f / (2 + f).
template <bool has_low = false, class T>
CUOP_FN Stage<T, 4> log1p_argument(T x, T x_low = 0) {
  const LogArgument<T> a = split(1 + x);
  // (1 + x) / 2^k - 1 without the rounding of 1 + x.
  const T shift = a.inverse - 1, f = multiply_add(x, a.inverse, shift);
  const T rounding = multiply_add(x, a.inverse, shift - f);
  const T f_low = has_low ? multiply_add(x_low, a.inverse, rounding) : rounding;
  return {{a.k, f, f_low, f / (2 + f)}};
}
/// Its logarithm; of x = -0 it is 0.
template <class T>
CUOP_FN T quick_log1p(Stage<T, 4> argument) {
  using C = Coefficients<T>;
  const auto [k, f, f_low, s] = argument.values;
  const Sum<T> first = quick_sum(k * C::kLn2High, f);
  const T low = multiply_add(k, C::kLn2Low, first.low + f_low);
  return first.high + (low + (log_tail(f, s) - T(0.5) * f * f));
}
template <class T>
CUOP_FN T log1p(T x) {
  const bool is_moderate = x < T(0x1p60);
  const T value =
      choose(is_moderate, quick_log1p(log1p_argument(x)), quick_log(choose(is_moderate, T(1), x)));
  const T edge = x == -1 ? -T(math::infinity) : T(math::nan);
  const T finite = x > -1 ? value : edge;
  return x == T(math::infinity) ? x : choose(x == 0, x, finite);
}
/// Of an argument that is not as above, and of 0. A sum below 0 has an exponent far away.
template <class T>
CUOP_FN Doubt<T> doubt_of_log1p(T x, Stage<T, 4> argument) {
  return doubt_beyond(argument.values[0], T(60)) | (bits_of(math::abs(x)) - 1);
}

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
template <class T>
CUOP_FN T softplus(T x) {
  using R = ExpRange<T>;
  const T size = -math::abs(x);
  const Power<T> e = exp_parts(size < R::kLow ? R::kLow : size);
  // Below it log(1 + y) = y.
  constexpr T kTiny = -2 * R::kOne;
  constexpr T kVanishes = Format<T>::kPower - 3 * Format<T>::kMantissa;
  const T half = pow2_half(e.shifted < kVanishes ? kVanishes : e.shifted), power = half + half;
  const Sum<T> y = log1p_sum(Sum<T>{power * e.high, power * e.low});
  const Sum<T> sum = two_sum(x > 0 ? x : T(0), y.high);
  const T value = sum.high + (sum.low + y.low);
  const T tail = scaled(e.high + e.low, e.shifted, x < R::kSmall);
  return x < kTiny ? tail : x < T(math::infinity) ? value : x;
}

/// v = (a - 1) + sqrt(a^2 + one) for a >= 0; v.low may be many ulps.
template <class T>
CUOP_FN Sum<T> area_argument(T a, T one) {
  const Sum<T> square = two_product(a, a);
  const Sum<T> h = two_sum(square.high, one);
  const T root = math::sqrt(h.high);
  const T rest = residual(h.high, root, root) + (h.low + square.low);
  const T root_low = h.high > 0 ? rest * (T(0.5) / root) : T(0);
  // The 1 is taken from the larger of the two terms, without rounding.
  const T first = one > 0 ? a : a - 1, second = one > 0 ? root - 1 : root;
  const Sum<T> v = two_sum(first, second);
  return {v.high, v.low + root_low};
}
/// log(a + sqrt(a^2 + one)) for a >= 0.
template <class T>
CUOP_FN T area(T a, T one) {
  constexpr T kLarge = sizeof(T) == 4 ? T(0x1p14) : T(0x1p28);
  const Sum<T> v = area_argument(a, one);
  const bool is_large = a > kLarge;
  const Sum<T> y =
      log1p_sum(Sum<T>{is_large ? a - 1 : v.high, is_large ? T(0) : v.low}, is_large ? T(1) : T(0));
  return y.high + y.low;
}

template <class T>
CUOP_FN T asinh(T x) {
  const T size = math::abs(x), y = area(size, T(1));
  const T value = size < T(math::infinity) ? y : size;
  return size < T(0x1p-30) ? x : math::copysign(value, x);
}
template <class T>
CUOP_FN T acosh(T x) {
  const T y = area(x, T(-1));
  const T value = x < T(math::infinity) ? y : x;
  return x >= 1 ? value : T(math::nan);
}

/// (1 + x) / (1 - x) = 2^k (1 + s) / (1 - s), and atanh(x) = k ln(2)/2 + atanh(s), for |s| < 0.21.
template <class T>
CUOP_FN T atanh(T x) {
  using C = Coefficients<T>;
  using F = Format<T>;
  using Bits = BitsOf<T>;
  const T size = math::abs(x), a = size < 1 ? size : T(0);
  // The exponent of the quotient from the difference of the bits.
  const Bits apart = bits_of(1 + a) - bits_of(1 - a) + (Bits(1) << (F::kMantissa - 1));
  const Bits k_bits = apart >> F::kMantissa;
  const T k = from_bits<T>(bits_of(F::kWhole) + k_bits) - F::kWhole;
  const T u = from_bits<T>((Bits(F::kBias) - k_bits) << F::kMantissa);
  // Both are rounded where x is next to 1.
  const Sum<T> difference = quick_sum(T(1), -u), sum = quick_sum(T(1), u);
  const Sum<T> ahead = quick_sum(a, a * u), across = two_product(a, difference.high);
  const Sum<T> n = two_sum(ahead.high, -difference.high), d = quick_sum(sum.high, -across.high);
  const T n_low = n.low + (ahead.low - difference.low);
  const T d_low = d.low + (sum.low - (across.low + a * difference.low));
  const Sum<T> s = quotient(quick_sum(n.high, n_low), quick_sum(d.high, d_low));
  const T z = s.high * s.high;
  const Sum<T> first = quick_sum(k * (C::kLn2High / 2), s.high);
  const T tail = multiply_add(s.high * z, polynomial(C::kAtanh, z), s.low);
  const T y = first.high + (first.low + multiply_add(k, C::kLn2Low / 2, tail));
  const T edge = size == 1 ? T(math::infinity) : T(math::nan);
  return size < T(0x1p-30) ? x : math::copysign(size < 1 ? y : edge, x);
}

/// Logarithms of 1 + v where the error allowed to double leaves room for that of quick_log1p.
CUOP_FN Stage<double, 4> quick_atanh_argument(double x) {
  const double a = math::abs(x), n = a + a, d = 1 - a, inverse = 1 / d, v = n * inverse;
  return log1p_argument<true>(v, (residual(n, v, d) - v * ((1 - d) - a)) * inverse);
}
CUOP_FN Stage<double, 4> quick_area_argument(double a, double one) {
  const Sum<double> parts = area_argument(a, one), v = quick_sum(parts.high, parts.low);
  return log1p_argument<true>(v.high, v.low);
}
/// Up to here the square of x is finite, and of double it has digits for the 1.
template <class T>
inline constexpr T kMostArea = sizeof(T) == 4 ? T(0x1p60) : T(0x1p28);
template <class T>
CUOP_FN Doubt<T> doubt_of_atanh(T x) {
  return doubt_beyond(x, sizeof(T) == 4 ? T(0x1.fffffep-1) : T(0x1.fffffffffffffp-1));
}

}  // namespace cuop::jit::accurate
