// Shorter forms of functions for arguments with |x| up to kMostQuick, where no power of two on the
// way leaves the normal numbers. The last bit may differ from the general form's.
#pragma once

#include "cuop/jit/kernels/accurate/logarithm.h"

namespace cuop::jit::accurate {

template <class T>
inline constexpr T kMostQuick = sizeof(T) == 4 ? T(84) : T(700);

/// e^(x + x_low), |x| up to kMostQuick; with what the reduced argument lost if so asked.
template <bool keeps_rest = false, class T>
CUOP_FN Sum<T> quick_exp(T x, T x_low) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = multiply_add(x, C::kInvLn2, kScale), n = shifted - kScale;
  const T longer = multiply_add(n, -C::kLn2High, x);
  const T low = keeps_rest ? multiply_add(n, -C::kLn2Low, x_low) : T(0);
  const T r = keeps_rest ? longer + low : multiply_add(n, -C::kLn2Low, longer) + x_low;
  const T high = 1 + r, lost = r - (high - 1);
  const T rest = keeps_rest ? lost + (low - (r - longer)) : lost;
  const Sum<T> sum = quick_sum(high, multiply_add(r * r, polynomial(C::kExp, r), rest));
  const T power = pow2_half(shifted);
  return {sum.high * power, sum.low * power};
}

template <class T>
CUOP_FN T quick_exp(T x) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = multiply_add(x, C::kInvLn2, kScale), n = shifted - kScale;
  const T high = multiply_add(n, -C::kLn2High, x), r = multiply_add(n, -C::kLn2Low, high);
  // What r lost does not matter beside the wider error allowed to double.
  const T low = sizeof(T) == 4 ? multiply_add(n, -C::kLn2Low, high - r) : T(0);
  const T tail = multiply_add(r * r, polynomial(C::kExp, r), low);
  return (1 + (r + tail)) * pow2_half(shifted);
}
template <class T>
CUOP_FN T quick_exp2(T x) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = x + kScale, r = x - (shifted - kScale);
  const T square = r * r * polynomial(C::kExp2, r);
  T tail;
  if constexpr (math::has_fast_fma) {
    tail = math::fma(r, C::kLn2, square);
  } else {
    const Sum<T> first = two_product(r, C::kLn2);  // rounded twice it would not be monotone
    tail = first.high + (first.low + square);
  }
  return (1 + tail) * pow2_half(shifted);
}

/// factor / (1 + e^-(y + y_low)).
template <bool keeps_rest = false, class T>
CUOP_FN T quick_logistic(T factor, T y, T y_low) {
  const Sum<T> e = quick_exp<keeps_rest>(-y, -y_low);
  const bool is_large = e.high > 1;
  const T larger = chosen(is_large, e.high, T(1)), smaller = chosen(is_large, T(1), e.high);
  const T divisor = 1 + e.high, low = (smaller - (divisor - larger)) + e.low;
  const T inverse = 1 / divisor, q = factor * inverse;
  return multiply_add(residual(factor, q, divisor) - q * low, inverse, q);
}

template <class T>
CUOP_FN T quick_sigmoid(T x) {
  return quick_logistic(T(1), x, T(0));
}
template <class T>
CUOP_FN T quick_silu(T x) {
  return math::copysign(quick_logistic(x, x, T(0)), x);
}

/// Arguments of quick_gelu_tanh, which cubes them.
template <class T>
inline constexpr T kMostQuickCubic = sizeof(T) == 4 ? T(9.5) : T(20);

template <class T>
CUOP_FN T quick_gelu_tanh(T x) {
  using C = Coefficients<T>;
  const Sum<T> square = two_product(x, x), cubic = two_product(square.high, C::kGeluCubic);
  // Exact with the few digits of the constant.
  const Sum<T> sum = quick_sum(C::kGeluLinear, cubic.high);
  const T low =
      sum.low +
      (cubic.low + multiply_add(square.low, C::kGeluCubic,
                                multiply_add(square.high, C::kGeluCubicRest, C::kGeluLinearRest)));
  const Sum<T> inner = two_product(x, sum.high);
  const T y_low = multiply_add(x, low, inner.low);
  return math::copysign(quick_logistic<sizeof(T) == 4>(x, inner.high, y_low), x);
}

/// 1 - 2 / (e^(2 |x|) + 1), and a polynomial where that would cancel.
template <class T>
CUOP_FN T quick_tanh(T x) {
  using C = Coefficients<T>;
  constexpr T kMost = ExpRange<T>::kOne;
  const T size = math::abs(x), bounded = at_most(size, kMost);
  const Sum<T> e = quick_exp(2 * bounded, T(0));
  const T divisor = e.high + 1, low = (1 - (divisor - e.high)) + e.low;
  const T inverse = 2 / divisor;
  // Twice the inverse; the rest of the quotient is of first order.
  const T rest = residual(T(2), inverse, divisor) - inverse * low;
  const T far = 1 - multiply_add(rest * inverse, T(0.5), inverse);
  const T z = x * x;
  const T near = multiply_add(size * z, polynomial(C::kTanh, z), size);
  return math::copysign(size < C::kTanhNear ? near : far, x);
}

template <class T>
CUOP_FN T quick_cosh(T x) {
  const Sum<T> e = quick_exp(math::abs(x), T(0));
  return T(0.5) * (e.high + (e.low + 1 / e.high));
}
template <class T>
CUOP_FN T quick_sinh(T x) {
  using C = Coefficients<T>;
  const T size = math::abs(x), z = x * x;
  const Sum<T> e = quick_exp(size, T(0));
  const T far = T(0.5) * (e.high + (e.low - 1 / e.high));
  const T near = multiply_add(size * z, polynomial(C::kSinhWide, z), size);
  return math::copysign(size < 1 ? near : far, x);
}

/// e^-|x| in two parts.
template <class T>
CUOP_FN Stage<T, 2> prepared_softplus(T x) {
  const Sum<T> e = quick_exp(-math::abs(x), T(0));
  return {{e.high, e.low}};
}
/// max(x, 0) + log(1 + e^-|x|), where 1 + e^-|x| = 2^k (1 + f) with k = 0 or 1.
template <class T>
CUOP_FN T quick_softplus(T x, Stage<T, 2> stage) {
  using C = Coefficients<T>;
  const Sum<T> e{stage.values[0], stage.values[1]};
  const bool is_upper = e.high > T(0.41421356);
  const Sum<T> upper = quick_sum(T(-1), e.high);
  const T f = is_upper ? upper.high * T(0.5) : e.high;
  const T f_low = is_upper ? (upper.low + e.low) * T(0.5) : e.low;
  const Sum<T> first = quick_sum(is_upper ? C::kLn2High : T(0), f);
  const Sum<T> second = two_sum(x > 0 ? x : T(0), first.high);
  const T tail = log_tail(f) - T(0.5) * f * f;
  // With more roundings elsewhere the slope of the logarithm has to be nearer.
  const T slope = math::has_fast_fma ? 1 - f : 1 - f + f * f;
  const T low = multiply_add(f_low, slope, is_upper ? C::kLn2Low : T(0));
  return second.high + (second.low + (first.low + (low + tail)));
}
/// Next to 0 neighbours are nearer to each other than the rounding errors of that.
template <class T>
inline constexpr T kNearSoftplus = sizeof(T) == 4 ? T(0x1p-18) : T(0x1p-40);
/// There log(2) + x / 2 + x^2 / 8, rounded once before log(2) is added.
template <class T>
CUOP_FN T quick_softplus(T x) {
  using C = Coefficients<T>;
  const T half = T(0.5) * x, rest = multiply_add(half, T(0.25) * x, C::kLn2Rest);
  return math::abs(x) < kNearSoftplus<T> ? C::kLn2 + (half + rest)
                                         : quick_softplus(x, prepared_softplus(x));
}
/// Of |x| greater than kMostQuick, of NaN and of what is next to 0 but not 0.
template <class T>
CUOP_FN Doubt<T> doubt_of_softplus(T x) {
  const BitsOf<T> size = bits_of(math::abs(x));
  return (bits_of(kMostQuick<T>) - size) | ((size - bits_of(kNearSoftplus<T>)) & ~(size - 1));
}

}  // namespace cuop::jit::accurate
