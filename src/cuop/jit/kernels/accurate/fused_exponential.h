// The logistic function, its relatives and the hyperbolic functions where there are fused
// operations, for |x| up to kMostQuick. Few steps in a short chain: what limits processors here is
// how many elements they can work at side by side. Below 1 ulp of float, tried on all arguments up
// to there; below 1.4 of double, tried on millions.
#pragma once

#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

template <class T>
CUOP_FN T fused_exp_rest(T r) {
  if constexpr (sizeof(T) == 4) {
    return polynomial(Fused<float>::kExp, r);
  } else {
    return polynomial(Coefficients<double>::kExp, r);
  }
}

/// e^y = power (1 + less); if so asked less = high + tail, apart.
template <bool is_exact, class T>
using ExpParts = Stage<T, is_exact ? 3 : 2>;
template <bool is_exact, class T>
CUOP_FN ExpParts<is_exact, T> fused_exp_parts(T power, T r, T high, T low) {
  const T square = r * r, p = fused_exp_rest(r);
  if constexpr (is_exact) {
    return {{power, high, math::fma(square, p, low)}};
  } else {
    return {{power, math::fma(square, p, r)}};
  }
}
template <bool is_exact, class T>
CUOP_FN ExpParts<is_exact, T> fused_exp_parts(T y) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = math::fma(y, C::kInvLn2, kScale), n = shifted - kScale;
  const T r = math::fma(n, -C::kLn2Low, math::fma(n, -C::kLn2High, y));
  // What r lost is less than a quarter of an ulp of e^y.
  return fused_exp_parts<is_exact>(pow2_half(shifted), r, r, T(0));
}
/// Of y + y_low.
template <bool is_exact, class T>
CUOP_FN ExpParts<is_exact, T> fused_exp_parts(T y, T y_low) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = math::fma(y, C::kInvLn2, kScale), n = shifted - kScale;
  const T high = math::fma(n, -C::kLn2High, y), low = math::fma(n, -C::kLn2Low, y_low);
  return fused_exp_parts<is_exact>(pow2_half(shifted), high + low, high, low);
}

/// factor / (1 + e^y) of the parts of e^y. The divisor's rounding is made good with the quotient's,
/// where so asked with that of e^y. A factor of 0 keeps its sign; with -rest, which g++ takes into
/// the sum, it would not.
template <class T, int Count>
CUOP_FN T fused_logistic(T factor, Stage<T, Count> e) {
  constexpr bool is_exact = Count == 3;
  const T power = e.values[0], less = is_exact ? e.values[1] + e.values[Count - 1] : e.values[1];
  const T sum = 1 + power, missed = 1 - (sum - power);
  const T divisor = math::fma(power, less, sum), left = sum - divisor;
  T low = math::fma(power, e.values[1], left);
  if constexpr (is_exact) {
    low += math::fma(power, e.values[2], missed);
  } else {
    low += missed;
  }
  const T inverse = 1 / divisor, q = factor * inverse;
  const T rest = math::fma(q, low, math::fma(q, divisor, -factor));
  return math::fma(rest, -inverse, q);
}
/// The relative error of a product with x may count up to twice as many ulps, which double permits.
template <class T>
inline constexpr bool is_exact_product = sizeof(T) == 4;

/// e^(-y) of y = 2 sqrt(2/pi) (x + 0.044715 x^3) in a unit that is nearly 1: in it all constants
/// are nearly numbers of type T, and n is multiplied by one that is.
template <class T>
CUOP_FN ExpParts<is_exact_product<T>, T> fused_gelu_tanh_exp(T x) {
  using C = Fused<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T z = x * x, z_low = math::fma(x, x, -z);
  // The linear constant has so few digits that its difference from the sum is exact.
  const T sum = math::fma(z, C::kGeluCubic, C::kGeluLinear);
  const T sum_low =
      math::fma(z_low, C::kGeluCubic, math::fma(z, C::kGeluCubic, C::kGeluLinear - sum));
  const T y = x * sum, low = math::fma(-x, sum_low, math::fma(-x, sum, y));
  const T shifted = math::fma(-y, C::kGeluPerUnit, kScale), n = shifted - kScale;
  const T high = math::fma(n, -C::kGeluUnit, -y), r = high + low;  // high is exact
  const T bend = math::fma(r, polynomial(C::kGeluExp, r), C::kGeluSlope);
  if constexpr (is_exact_product<T>) {
    return {{pow2_half(shifted), high, math::fma(r, bend, low)}};
  } else {
    return {{pow2_half(shifted), math::fma(r, bend, r)}};
  }
}

/// (2^n - 1) + 2^n (r + tail) with what r and the first sum lost.
template <class T>
CUOP_FN T fused_expm1(T x) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1;
  const T shifted = math::fma(x, C::kInvLn2, kScale), n = shifted - kScale;
  const T high = math::fma(n, -C::kLn2High, x), r = math::fma(n, -C::kLn2Low, high);
  const T power = pow2_half(shifted), less = power - 1, p = polynomial(C::kExp, r);
  const T tail = math::fma(r * r, p, math::fma(n, -C::kLn2Low, high - r));
  const T first = math::fma(power, r, less), rounding = math::fma(power, r, less - first);
  // The wider error allowed to double covers what the difference loses of large powers.
  const T low = sizeof(T) == 4 ? rounding + ((power - less) - 1) : rounding;
  return math::copysign(first + math::fma(power, tail, low), x);
}

/// sinh and cosh of x = n ln 2 + r: with m = (2^n - 2^-n) / 2 and p = (2^n + 2^-n) / 2 they are
/// m cosh r + p sinh r and p cosh r + m sinh r: without a division, and with n = 0 near 0. Here
/// 2^n / 2, r, cosh r - 1 and sinh r - r.
template <class T>
CUOP_FN Stage<T, 4> fused_cosh_parts(T x) {
  using C = Coefficients<T>;
  using F = Format<T>;
  const T size = math::abs(x);
  const T shifted = math::fma(size, C::kInvLn2, F::kPower), n = shifted - F::kPower;
  const T r = math::fma(n, -C::kLn2High, size) + n * -C::kLn2Low, z = r * r;
  return {{pow2_half(shifted), r, z * polynomial(C::kCosh, z), r * z * polynomial(C::kSinh, z)}};
}
/// 2^-n / 2 of 2^n / 2.
template <class T>
CUOP_FN T inverse_power(T upper) {
  using F = Format<T>;
  constexpr BitsOf<T> kTwoBiases = BitsOf<T>(2 * F::kBias - 2) << F::kMantissa;
  return from_bits<T>(kTwoBiases - bits_of(upper));
}
/// The same with n of the sign of x and r exact. From it the larger terms are taken; the others are
/// those of r without what n ln 2 lacks, which goes into the last one. That one is negative here.
template <class T>
CUOP_FN Stage<T, 4> fused_sinh_parts(T x) {
  using C = Coefficients<T>;
  using F = Format<T>;
  const T shifted = math::fma(x, C::kInvLn2, F::kPower), n = shifted - F::kPower;
  const T r = math::fma(n, -C::kLn2, x), less = n * C::kLn2Rest, t = r - less, z = t * t;
  const T odd = math::fma(-(t * z), polynomial(C::kSinh, z), less);
  return {{pow2_half(shifted), r, z * polynomial(C::kCosh, z), odd}};
}
/// 0 keeps its sign, as positive zeros are subtracted from it.
template <class T>
CUOP_FN T fused_sinh(Stage<T, 4> parts) {
  const auto [upper, r, even, odd] = parts.values;
  const T lower = inverse_power(upper), less = lower - upper, plus = upper + lower;
  const T first = math::fma(plus, r, -less), low = math::fma(-plus, r, first + less);
  return first - math::fma(plus, odd, math::fma(less, even, low));
}
template <class T>
CUOP_FN T fused_cosh(Stage<T, 4> parts) {
  const auto [upper, r, even, odd] = parts.values;
  const T lower = inverse_power(upper), minus = upper - lower, plus = upper + lower;
  const T first = math::fma(minus, r, upper), first_low = math::fma(minus, r, upper - first);
  return first + math::fma(minus, odd, math::fma(plus, even, first_low + lower));
}

template <class T>
CUOP_FN T fused_tanh_near(T size) {
  const T z = size * size;
  if constexpr (sizeof(T) == 4) {
    return math::fma(size * z, horner(Fused<float>::kTanh, z), size);
  } else {
    return math::fma(size * z, polynomial(Coefficients<double>::kTanh, z), size);
  }
}
/// x + x^3 P(x^2) up to 0.9 of float and 0.6 of double, beyond 1 - 2 / (e^(2 |x|) + 1), whose
/// second term is less than a half. Below 1 ulp of float and monotone, tried on all arguments.
template <class T>
CUOP_FN T fused_tanh(T x) {
  using C = Coefficients<T>;
  constexpr T kScale = Format<T>::kPower + 1, kMost = ExpRange<T>::kOne;
  constexpr T kNear = sizeof(T) == 4 ? T(0.9) : C::kTanhNear;
  const T size = math::abs(x), bounded = at_most(size, kMost);
  const T shifted = math::fma(bounded, 2 * C::kInvLn2, kScale), n = shifted - kScale;
  const T r = math::fma(n, -C::kLn2Low, math::fma(n, -C::kLn2High, bounded + bounded));
  const T power = pow2_half(shifted), less = math::fma(r * r, fused_exp_rest(r), r);
  const T far = 1 - 2 / (math::fma(less, power, power) + 1);
  return math::copysign(size < kNear ? fused_tanh_near(size) : far, x);
}

}  // namespace cuop::jit::accurate
