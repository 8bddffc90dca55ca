// sin, cos and tan where there are fused operations, in the type of the argument.
//
// x = h pi + r - excess and one polynomial; for tan h pi/2 and the quotient of two. The angle has
// three parts (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980): h A is
// subtracted exactly. All signs are such that a zero keeps its own. Below 1 ulp of float, tried on
// all arguments up to kMostFused<float>; below 1.35 of double, tried on millions of random ones and
// on the neighbours of all multiples of pi/2 up to kMostFused<double>.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Arguments up to this size are reduced here.
template <class T>
inline constexpr T kMostFused = sizeof(T) == 4 ? T(0x1p16) : T(0x1p20);

template <class T>
struct Turned {
  T r, excess;
};
/// Of a, which is x - h A, and of h B + h C. What is subtracted from a is exact, also where
/// rounding r takes something from it: of float h B is rounded before, of double it is exact.
template <class T>
CUOP_FN Turned<T> turned(T a, T h, T part_b, T part_c) {
  const T r = sizeof(T) == 4 ? a - h * part_b : math::fma(-h, part_b, a);
  return {r, math::fma(h, part_c, math::fma(h, part_b, r - a))};
}

/// sin(r - excess + turns pi) for |r| up to pi/2: r c + r P, where P is small: with the larger part
/// of its slope apart it is rounded twice, and hardly anything else counts.
CUOP_FN float half_turn_sine(Turned<float> x, uint32_t turns) {
  constexpr float kMain = 0.7615f;
  const float r = x.r, z = r * r, slope = math::fma(z, 0.40625f, -1.0f);  // minus the cosine
  const float linear = math::fma(r * -0.125f, r, 1 - kMain);
  const float p = math::fma(z, horner(Fused<float>::kHalfTurn, z), linear);
  const float y = math::fma(r, kMain, math::fma(r, p, x.excess * slope));
  return from_bits<float>(bits_of(y) ^ (turns << 31));
}
/// The same with r 13/16 and a P of less than 3/16.
CUOP_FN double half_turn_sine(Turned<double> x, uint64_t turns) {
  using C = Fused<double>;
  const double w = math::fma(x.r, x.r, -1.9375);
  const double minus_slope = math::fma(w, 0.40625, -0.212890625);  // the slope is the cosine
  const double p = math::fma(w, polynomial<2>(C::kHalfTurn, w), C::kHalfTurn[1]);
  const double rest = math::fma(x.r, math::fma(w, p, C::kHalfTurn[0]), x.excess * minus_slope);
  return from_bits<double>(bits_of(math::fma(x.r, 0.8125, rest)) ^ (turns << 63));
}
/// The argument: r, excess and, in the last bits, the turns.
template <class T>
CUOP_FN Stage<T, 3> fused_sin_argument(T x) {
  using C = Fused<T>;
  const T shifted = math::fma(x, C::kInvPi, Format<T>::kWhole), h = shifted - Format<T>::kWhole;
  const Turned<T> t = turned(math::fma(-h, C::kPiA, x), h, C::kPiB, C::kPiC);
  return {{t.r, t.excess, shifted}};
}
/// x lies half a turn less r behind a whole number of turns, h of them; the first difference is
/// rounded where x is less than 1, by half an ulp of the result or less, which double permits.
template <class T>
CUOP_FN Stage<T, 3> fused_cos_argument(T x) {
  using C = Fused<T>;
  const T shifted = math::fma(x, C::kInvPi, T(-0.5)) + Format<T>::kWhole;
  const T minus_h = (Format<T>::kWhole - shifted) - T(0.5);
  const T a = math::fma(-minus_h, C::kPiA, -x);
  Turned<T> t = turned(a, minus_h, C::kPiB, C::kPiC);
  if constexpr (sizeof(T) == 4) t.excess += math::fma(minus_h, C::kPiA, a) + x;
  return {{t.r, t.excess, shifted}};
}
template <class T>
CUOP_FN T half_turn_sine(Stage<T, 3> argument) {
  const auto [r, excess, turns] = argument.values;
  return half_turn_sine(Turned<T>{r, excess}, bits_of(turns));
}

/// x less the nearest multiple of pi/2, and that multiple in the last bits.
template <class T>
struct QuarterTurns {
  Turned<T> rest;
  BitsOf<T> count;
};
template <class T>
CUOP_FN QuarterTurns<T> quarter_turns(T x) {
  using C = Fused<T>;
  const T shifted = math::fma(x, C::kTwoOverPi, Format<T>::kWhole), h = shifted - Format<T>::kWhole;
  const T a = math::fma(-h, C::kHalfPiA, x);
  return {turned(a, h, C::kHalfPiB, C::kHalfPiC), bits_of(shifted)};
}

/// The argument: r, excess and, in the last bits, the quarters.
template <class T>
CUOP_FN Stage<T, 3> fused_tan_argument(T x) {
  const QuarterTurns<T> turns = quarter_turns(x);
  return {{turns.rest.r, turns.rest.excess, from_bits<T>(turns.count)}};
}
/// Whether the last bit is 1, asked of a sign, by which processors select.
CUOP_FN bool is_odd(uint32_t count) { return static_cast<int32_t>(count << 31) < 0; }
CUOP_FN bool is_odd(uint64_t count) { return static_cast<int64_t>(count << 63) < 0; }
/// r + r P(r^2 - 3/8), in odd quarters -1 by that. P is small where r is, and what rounds its
/// argument is small where P is not.
CUOP_FN float fused_tan(Stage<float, 3> argument) {
  const auto [r, excess, turns] = argument.values;
  const float w = math::fma(r, r, -0.375f), slope = math::fma(w, 1.6f, 1.6f);
  const float p = polynomial(Fused<float>::kTangent, w);
  const float less = math::fma(-r, p, excess * slope);  // subtracted, so that 0 keeps its sign
  const float t = r - less, inverse = -1 / t;
  const float error = math::fma(-less, inverse, math::fma(r, inverse, 1.0f));  // of r - less
  return is_odd(bits_of(turns)) ? math::fma(error, inverse, inverse) : t;
}

/// The quotient of r + r^3 N(r^2) and 1 + r^2 D(r^2), each as a number less another; in odd
/// quarters that of the second and the first, negative.
CUOP_FN double fused_tan(Stage<double, 3> argument) {
  using C = Fused<double>;
  const auto [r, excess, turns] = argument.values;
  const double z = r * r, slope = horner(C::kTangentBelow, z);
  const double sine_less = math::fma(-(r * z), horner(C::kTangentAbove, z), excess);
  const double cosine = math::fma(z, slope, 1.0);
  const double cosine_less = math::fma(-z, slope, cosine - 1);
  const BitsOf<double> count = bits_of(turns);
  const bool is_cotangent = is_odd(count);
  const double n = is_cotangent ? cosine : r, d = is_cotangent ? r : cosine;
  const double n_less = is_cotangent ? cosine_less : sine_less;
  const double d_less = is_cotangent ? sine_less : cosine_less;
  const double inverse = 1 / (d - d_less), q = (n - n_less) * inverse;
  const double excess_q = math::fma(-q, d_less, math::fma(q, d, -n) + n_less);  // by the divisor
  return from_bits<double>(bits_of(math::fma(-excess_q, inverse, q)) ^ (count << 63));
}

}  // namespace cuop::jit::accurate
