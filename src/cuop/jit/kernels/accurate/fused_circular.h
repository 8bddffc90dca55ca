// sin, cos and tan where there are fused operations, in the type of the argument.
//
// x = k pi/2 + r + low, for sin and cos of double k pi + r + low, with the angle in three parts (W.
// J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980): k A is subtracted
// exactly, k B as a product in two parts. Below 1 ulp of float, tried on all arguments up to
// kMostFused<float>; below 1.3 of double, tried on millions of random ones and on the neighbours of
// all multiples of pi/2 up to kMostFused<double>, with tan 1.4.
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
template <int First = 0>
CUOP_FN float circular_polynomial(bool is_odd, float z) {
  using C = Fused<float>;
  const float coefficient = is_odd ? C::kCosine[First] : C::kSine[First];
  if constexpr (First + 1 == sizeof(C::kSine) / sizeof(float)) {
    return coefficient;
  } else {
    return math::fma(circular_polynomial<First + 1>(is_odd, z), z, coefficient);
  }
}
/// sin(r + low + count pi/2): r + (r z P + low), or (1 - z/2) + (z^2 P - r low) in odd quarters.
CUOP_FN float quarter_turn_sine(float r, float low, uint32_t count) {
  const bool is_odd = (count & 1) != 0;
  const float z = r * r;
  const float rest = math::fma(z, -0.5f, 1.0f), rest_low = math::fma(z, -0.5f, 1 - rest);
  const float added = is_odd ? math::fma(-r, low, rest_low) : low;
  const float factor = z * (is_odd ? z : r);
  const float y = (is_odd ? rest : r) + math::fma(factor, circular_polynomial(is_odd, z), added);
  return from_bits<float>(bits_of(y) ^ (count >> 1 << 31));
}
CUOP_FN float fused_sin(float x) {
  const QuarterTurns<float> turns = quarter_turns(x);
  const float y = quarter_turn_sine(turns.r, turns.low, turns.count);
  return x == 0 ? x : y;
}
CUOP_FN float fused_cos(float x) {
  const QuarterTurns<float> turns = quarter_turns(x);
  return quarter_turn_sine(turns.r, turns.low, turns.count + 1);
}

/// sin(r + low + turns pi) of double for |r| up to pi/2: r 13/16 + r P, where P is less than 3/16.
CUOP_FN double half_turn_sine(double r, double low, uint64_t turns) {
  using C = Fused<double>;
  const double w = math::fma(r, r, -1.9375),
               slope = math::fma(w, -0.40625, 0.212890625);  // the cosine's
  const double p = math::fma(w, polynomial<2>(C::kHalfTurn, w), C::kHalfTurn[1]);
  const double rest = math::fma(r, math::fma(w, p, C::kHalfTurn[0]), low * slope);
  return from_bits<double>(bits_of(math::fma(r, 0.8125, rest)) ^ (turns << 63));
}
/// x - h pi in two parts.
CUOP_FN Sum<double> half_turns(double x, double h) {
  const double a = math::fma(-h, Pi::kA, x);
  const Sum<double> b = two_product(h, Pi::kB);
  const double r = a - b.high;
  return {r, math::fma(-h, Pi::kC, ((a - r) - b.high) - b.low)};
}
CUOP_FN double fused_sin(double x) {
  const double shifted = math::fma(x, kInvPi, Format<double>::kWhole);
  const Sum<double> r = half_turns(x, shifted - Format<double>::kWhole);
  const double y = half_turn_sine(r.high, r.low, bits_of(shifted));
  return math::abs(x) < 0x1p-26 ? x : y;
}
/// x lies half a turn and r behind a whole number of turns; the first difference is rounded where
/// x is less than 1.
CUOP_FN double fused_cos(double x) {
  const double shifted = math::fma(x, kInvPi, -0.5) + Format<double>::kWhole;
  const double h = (shifted - Format<double>::kWhole) + 0.5;
  const Sum<double> r = half_turns(x, h);
  const double a = math::fma(-h, Pi::kA, x), lost = x + math::fma(-h, Pi::kA, -a);
  return half_turn_sine(r.high, r.low + lost, bits_of(shifted) + 1);
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
