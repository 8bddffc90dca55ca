// sin and cos where there are fused operations, in the type of the argument.
//
// x = h pi + r - excess and one polynomial. The angle has three parts (W. J. Cody and W. Waite,
// Software Manual for the Elementary Functions, 1980): h A is subtracted exactly. All signs are
// such that a zero keeps its own. Below 1 ulp of float, tried on all arguments up to
// kMostFused<float>; below 1.35 of double, tried on millions of random ones and on the neighbours
// of all multiples of pi/2 up to kMostFused<double>.
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

}  // namespace cuop::jit::accurate
