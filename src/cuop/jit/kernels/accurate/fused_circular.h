// sin, cos and tan where there are fused operations, in the type of the argument.
//
// x = k pi/2 + r + low with pi/2 in three parts (W. J. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980): k A is subtracted exactly, k B as a product in two parts. The terms
// that are added to the largest one are at most a sixth of it, so that their errors hardly count:
// below 1 ulp of float, of all arguments up to kMostFused<float>, and below 1.3 of double.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Arguments up to this size are reduced here.
template <class T>
inline constexpr T kMostFused = sizeof(T) == 4 ? T(0x1p16) : T(0x1p20);

template <class T>
struct QuarterTurns {
  T r, low;
  BitsOf<T> count;  ///< k in the last bits
};
template <class T>
CUOP_FN QuarterTurns<T> quarter_turns(T x) {
  using C = Fused<T>;
  const T shifted = math::fma(x, C::kTwoOverPi, Format<T>::kWhole), k = shifted - Format<T>::kWhole;
  const T a = math::fma(-k, C::kHalfPiA, x);
  const T b = k * C::kHalfPiB, b_low = math::fma(k, C::kHalfPiB, -b);
  const T r = a - b;
  return {r, math::fma(-k, C::kHalfPiC, ((a - r) - b) - b_low), bits_of(shifted)};
}

/// P of the sine or of the cosine: choosing coefficients costs less than both polynomials.
template <class T, int First = 0>
CUOP_FN T circular_polynomial(bool is_odd, T z) {
  using C = Fused<T>;
  const T coefficient = is_odd ? C::kCosine[First] : C::kSine[First];
  if constexpr (First + 1 == sizeof(C::kSine) / sizeof(T)) {
    return coefficient;
  } else {
    return math::fma(circular_polynomial<T, First + 1>(is_odd, z), z, coefficient);
  }
}
/// sin(r + low + count pi/2): r + (r z P + low), or (1 - z/2) + (z^2 P - r low) in odd quarters.
template <class T>
CUOP_FN T fused_sine(QuarterTurns<T> x) {
  const bool is_odd = (x.count & 1) != 0;
  const T z = x.r * x.r;
  const T rest = math::fma(z, T(-0.5), T(1)), rest_low = math::fma(z, T(-0.5), 1 - rest);
  const T low = is_odd ? math::fma(-x.r, x.low, rest_low) : x.low;
  const T factor = z * (is_odd ? z : x.r);
  const T y = (is_odd ? rest : x.r) + math::fma(factor, circular_polynomial(is_odd, z), low);
  return from_bits<T>(bits_of(y) ^ (x.count >> 1 << (8 * sizeof(T) - 1)));
}
template <class T>
CUOP_FN T fused_sin(T x) {
  const T y = fused_sine(quarter_turns(x));
  return x == 0 ? x : y;
}
template <class T>
CUOP_FN T fused_cos(T x) {
  QuarterTurns<T> turns = quarter_turns(x);
  ++turns.count;
  return fused_sine(turns);
}

/// r + r w with w = z P(z) in two parts for float, one for double; in odd quarters -1 by that.
template <class T>
CUOP_FN T fused_tan(T x) {
  using C = Fused<T>;
  const QuarterTurns<T> turns = quarter_turns(x);
  const T r = turns.r, z = r * r, low = math::fma(T(1.5) * turns.low, z, turns.low);
  T tail;
  if constexpr (sizeof(T) == 4) {
    const T first = C::kTangent[0], z_low = math::fma(r, r, -z);
    const T rest = math::fma(z * z, polynomial<1>(C::kTangent, z), z_low * first);
    const T w = math::fma(z, first, rest), w_low = rest + math::fma(z, first, -w);
    tail = math::fma(r, w, math::fma(r, w_low, low));
  } else {
    tail = math::fma(r * z, polynomial(C::kTangent, z), low);
  }
  const T t = r + tail, t_low = tail - (t - r), inverse = -1 / t;
  const T error = math::fma(t_low, inverse, math::fma(t, inverse, T(1)));
  const T y = (turns.count & 1) != 0 ? math::fma(error, inverse, inverse) : t;
  return x == 0 ? x : y;
}

}  // namespace cuop::jit::accurate
