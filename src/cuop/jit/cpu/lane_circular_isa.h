// sin and cos of float from intervals of an eighth of half a turn and, with AVX-512, of double in
// stages.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/cpu/lane_coefficients.h"
#include "cuop/jit/kernels/accurate/fused_circular.h"

namespace cuop::jit {
namespace {

/// The values of as many intervals as a vector has floats: of eight, half a turn, or of sixteen,
/// whose second half has the other sign.
struct SineRows {
  using C = SineIntervals;
  alignas(64) float base[kLanes<float>], slope[kLanes<float>];

  constexpr SineRows() : base(), slope() {
    for (int i = 0; i < kLanes<float>; ++i) {
      const float sign = i < 8 ? 1.0f : -1.0f;
      base[i] = sign * C::kBase[i % 8];
      slope[i] = sign * C::kSlope[i % 8];
    }
  }
};
constexpr SineRows kSineRows;

/// sin(x + quarters pi/2) by x = h pi/8 + s - excess: base cos(s) + slope sin(s), whose small terms
/// are added first; the interval is h in eighths of a half turn. They are counted in units of 2^17,
/// so that too many of them are 2 or more, which is their doubt. Below 0.98 ulp, tried on all
/// arguments.
template <int Quarters>
struct EighthTurns {
  [[gnu::always_inline]] static Lanes apply(Lanes x, Lanes& doubt) {
    using C = SineIntervals;
    constexpr float kUnit = 1 << 17;
    // The last three bits are 4 where the result is nearly 0, and the fourth one is its sign.
    constexpr float kWhole = accurate::Format<float>::kWhole + 4 * (Quarters + 1);
    const Lanes whole = lanes(kWhole / kUnit), per_spacing = lanes(C::kPerSpacing / kUnit);
    const Lanes part_a = lanes(C::kSpacingA * kUnit), part_b = lanes(C::kSpacingB * kUnit);
    const Lanes part_c = lanes(C::kSpacingC * kUnit);
    const Lanes shifted = fma(x, per_spacing, whole), h = shifted - whole;
    doubt = either(doubt, h);
    // A product that is rounded, so that s - a is exact.
    const Lanes a = minus_product(h, part_a, x), s = a - h * part_b;
    const Lanes excess = fma(h, part_c, fma(h, part_b, s - a));
    const Lanes z = s * s, odd = fma(s * z, horner<0, 1>(C::kOdd, z), excess);
    const Lanes even = z * horner<0, 1>(C::kEven, z);
    const Lanes base = of_interval(kSineRows.base, shifted);
    const Lanes slope = of_interval(kSineRows.slope, shifted);
    const Lanes y = base + product_minus(s, slope, fma(slope, odd, base * even));
    if constexpr (kLanes<float> == 16) {
      return y;
    } else {
      const LaneBitsOf<float> sign = ((LaneBitsOf<float>)shifted << 28) & kSignBit<Lanes>;
      return (Lanes)((LaneBitsOf<float>)y ^ sign);
    }
  }
};
template <>
struct LaneForm<fn::Sin, float> : EighthTurns<0> {};
template <>
struct LaneForm<fn::Cos, float> : EighthTurns<1> {};

#ifdef __AVX512F__
/// The stages of fused_sin_argument, or fused_cos_argument, and half_turn_sine. Turns are counted
/// in units of 2^18, so that too many of them are 2 or more, which is their doubt. Below 1.35 ulp,
/// tried on millions and on the neighbours of all multiples of pi/2.
template <bool kIsCos>
struct HalfTurns {
  using V = DoubleLanes;
  using C = accurate::Fused<double>;
  static constexpr int kApart = 4;
  static constexpr double kUnit = 1 << 18;
  struct Stage {
    V r, excess, shifted;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    const V whole = lanes(accurate::Format<double>::kWhole / kUnit), half = lanes(0.5 / kUnit);
    const V per_turn = lanes(C::kInvPi / kUnit), part_a = lanes(C::kPiA * kUnit);
    const V part_b = lanes(C::kPiB * kUnit), part_c = lanes(C::kPiC * kUnit);
    if constexpr (kIsCos) {
      const V shifted = fma(x, per_turn, -half) + whole, h = (shifted - whole) + half;
      const V a = product_minus(h, part_a, x), r = fma(h, part_b, a);
      doubt = either(doubt, h);
      stage = {r, minus_product(h, part_c, minus_product(h, part_b, r - a)), shifted};
    } else {
      const V shifted = fma(x, per_turn, whole), h = shifted - whole;
      const V a = minus_product(h, part_a, x), r = minus_product(h, part_b, a);
      doubt = either(doubt, h);
      stage = {r, fma(h, part_c, fma(h, part_b, r - a)), shifted};
    }
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V) {
    const auto& terms = C::kHalfTurn;
    const V r = stage.r, w = fma(r, r, lanes(-1.9375)), square = w * w;
    const V minus_slope = fma(w, lanes(0.40625), lanes(-0.212890625));
    const V tail = fma(horner<3, 2>(terms, square), w, horner<2, 2>(terms, square));
    const V p = fma(w, tail, lanes(terms[1]));
    const V rest = fma(r, fma(w, p, lanes(terms[0])), stage.excess * minus_slope);
    const V y = fma(r, lanes(0.8125), rest);
    return (V)((LaneBitsOf<double>)y ^ (LaneBitsOf<double>)stage.shifted << 63);
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<HalfTurns>(x); }
};
template <>
struct LaneForm<fn::Sin, double> : HalfTurns<false> {};
template <>
struct LaneForm<fn::Cos, double> : HalfTurns<true> {};
#endif

}  // namespace
}  // namespace cuop::jit
#endif
