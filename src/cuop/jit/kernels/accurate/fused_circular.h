// sin, cos and tan where there are fused operations, in the type of the argument.
//
// x = h pi/2 + r - excess; for sin and cos of double h pi + r - excess, and one polynomial. The
// angle has three parts (W. J. Cody and W. Waite, Software Manual for the Elementary Functions,
// 1980): h A is subtracted exactly. All signs are such that a zero keeps its own. Below 1 ulp of
// float, tried on all arguments up to kMostFused<float>; below 1.3 of double, tried on millions of
// random ones and on the neighbours of all multiples of pi/2 up to kMostFused<double>, with
// tan 1.4.
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
/// Of a, which is x - h A, and of h B + h C.
template <class T>
CUOP_FN Turned<T> turned(T a, T h, T part_b, T part_c) {
  const T b = h * part_b, r = a - b, b_low = math::fma(h, part_b, -b);
  return {r, ((r - a) + b) + math::fma(h, part_c, b_low)};
}

/// sin(r - excess + count pi/2) for |r| up to pi/4: both polynomials cost less than the choice of
/// their coefficients.
CUOP_FN float quarter_turn_sine(Turned<float> x, uint32_t count) {
  using C = Fused<float>;
  const float r = x.r, z = r * r;
  const float sine = r - math::fma(r * z, horner(C::kSine, z), x.excess);
  const float rest = math::fma(z, -0.5f, 1.0f), rest_low = math::fma(z, -0.5f, 1 - rest);
  const float cosine =
      rest + math::fma(z * z, horner(C::kCosine, z), math::fma(r, x.excess, rest_low));
  const float y = (count & 1) != 0 ? cosine : sine;
  return from_bits<float>(bits_of(y) ^ (count >> 1 << 31));
}

/// The nearest whole number h to x / (pi/2), and x less h pi/2.
template <class T>
struct QuarterTurns {
  Turned<T> rest;
  BitsOf<T> count;  ///< h in the last bits
};
template <class T>
CUOP_FN QuarterTurns<T> quarter_turns(T x) {
  using C = Fused<T>;
  const T shifted = math::fma(x, C::kTwoOverPi, Format<T>::kWhole), h = shifted - Format<T>::kWhole;
  const T a = math::fma(-h, C::kHalfPiA, x);
  return {turned(a, h, C::kHalfPiB, C::kHalfPiC), bits_of(shifted)};
}
CUOP_FN float fused_sin(float x) {
  const QuarterTurns<float> turns = quarter_turns(x);
  return quarter_turn_sine(turns.rest, turns.count);
}
CUOP_FN float fused_cos(float x) {
  const QuarterTurns<float> turns = quarter_turns(x);
  return quarter_turn_sine(turns.rest, turns.count + 1);
}
/// sin(r - excess + turns pi) for |r| up to pi/2: r 13/16 + r P, where P is less than 3/16.
CUOP_FN double half_turn_sine(Turned<double> x, uint64_t turns) {
  using C = Fused<double>;
  const double w = math::fma(x.r, x.r, -1.9375);
  const double minus_slope = math::fma(w, 0.40625, -0.212890625);  // the slope is the cosine
  const double p = math::fma(w, polynomial<2>(C::kHalfTurn, w), C::kHalfTurn[1]);
  const double rest = math::fma(x.r, math::fma(w, p, C::kHalfTurn[0]), x.excess * minus_slope);
  return from_bits<double>(bits_of(math::fma(x.r, 0.8125, rest)) ^ (turns << 63));
}
CUOP_FN double fused_sin(double x) {
  using C = Fused<double>;
  const double shifted = math::fma(x, C::kInvPi, Format<double>::kWhole),
               h = shifted - Format<double>::kWhole;
  const double a = math::fma(-h, C::kPiA, x);
  return half_turn_sine(turned(a, h, C::kPiB, C::kPiC), bits_of(shifted));
}
/// x lies half a turn and r behind a whole number of turns; the first difference is rounded where
/// x is less than 1.
CUOP_FN double fused_cos(double x) {
  using C = Fused<double>;
  const double shifted = math::fma(x, C::kInvPi, -0.5) + Format<double>::kWhole;
  const double h = (shifted - Format<double>::kWhole) + 0.5;
  const double a = math::fma(-h, C::kPiA, x), gained = math::fma(h, C::kPiA, a) - x;
  Turned<double> t = turned(a, h, C::kPiB, C::kPiC);
  t.excess += gained;
  return half_turn_sine(t, bits_of(shifted) + 1);
}

/// tan(r - excess) - r by r^3 P(r^2), of float with what r^2 and the first product lose.
template <class T>
CUOP_FN T tangent_tail(T r, T excess) {
  using C = Fused<T>;
  const T z = r * r, low = math::fma(T(1.5) * excess, z, excess), cube = r * z;
  if constexpr (sizeof(T) == 4) {
    const T lost = math::fma(T(0.5) * r, math::fma(r, r, -z), -low);
    return math::fma(cube, C::kTangent[0],
                     math::fma(cube * z, polynomial<1>(C::kTangent, z), lost));
  } else {
    return math::fma(cube, polynomial(C::kTangent, z), -low);
  }
}
/// In odd quarters -1 by that of even ones.
template <class T>
CUOP_FN T fused_tan(T x) {
  const QuarterTurns<T> turns = quarter_turns(x);
  const T r = turns.rest.r, tail = tangent_tail(r, turns.rest.excess);
  const T t = r + tail, t_low = tail - (t - r), inverse = -1 / t;
  const T error = math::fma(t_low, inverse, math::fma(t, inverse, T(1)));
  return (turns.count & 1) != 0 ? math::fma(error, inverse, inverse) : t;
}

}  // namespace cuop::jit::accurate
