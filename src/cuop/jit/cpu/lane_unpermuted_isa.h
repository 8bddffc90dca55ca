// sin, cos, erf and tan of float where permutations across a vector take long
// (isa::has_slow_permutations()): no intervals, but one or two polynomials for all arguments. On
// Zen 3 a store also takes as long as two fused operations, so that what is between stages stays in
// registers; only tan, whose division takes longer still, stores it.
#pragma once

#include "cuop/jit/cpu/lane_tangent_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && !defined(__AVX512F__)
#define CUOP_HAS_UNPERMUTED_KERNELS
#include "cuop/jit/cpu/interval_coefficients.h"
#include "cuop/jit/kernels/accurate/fused_circular.h"

namespace cuop::jit {
namespace {

/// The form of F of these processors; most functions have none.
template <class F, class T>
struct UnpermutedForm;

/// The last bit of each lane as its sign, which is what a selection asks for.
struct LastAsSign {
  [[gnu::always_inline]] static Lanes of(Lanes x) { return (Lanes)((LaneBitsOf<float>)x << 31); }
};

/// x = h pi + r - excess, with h a whole number, or half of an odd one for cos, whose parity is the
/// last bit of `shifted`; then the steps of half_turn_sine. h is counted in units of 2^14, so that
/// one that is too large is 2 or more, which is its doubt. Below 1 ulp, tried on all arguments.
template <bool kIsCos>
struct FloatHalfTurns {
  using C = accurate::Fused<float>;
  static constexpr float kUnit = 1 << 14;
  struct Stage {
    Lanes r, excess, shifted;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const Lanes per_turn = lanes(C::kInvPi / kUnit), part_a = lanes(C::kPiA * kUnit);
    const Lanes part_b = lanes(C::kPiB * kUnit), part_c = lanes(C::kPiC * kUnit);
    if constexpr (kIsCos) {
      // This has a half behind its point, and sums of 2^23 or more have none: they are this and
      // half of an odd number. From kLeast on they are that large.
      constexpr float kStart = 0x1p23f - 0.5f, kLeast = 0.8f;
      const Lanes size = size_of(x), start = lanes(kStart / kUnit);
      const Lanes shifted = fma(at_least(size, kLeast), per_turn, start), h = shifted - start;
      doubt = either(doubt, h);
      // r and what belongs to it have the other sign, as cos falls at h = 1/2. a is exact but for
      // sizes below 0.6.
      const Lanes a = product_minus(h, part_a, size), r = a + h * part_b;
      const Lanes lost = minus_product(h, part_a, a) + size;
      const Lanes rest = minus_product(h, part_b, (r - a) + lost);
      stage = {r, minus_product(h, part_c, rest), shifted};
    } else {
      const Lanes whole = lanes(accurate::Format<float>::kWhole / kUnit);
      const Lanes shifted = fma(x, per_turn, whole), h = shifted - whole;
      doubt = either(doubt, h);
      const Lanes a = minus_product(h, part_a, x), r = a - h * part_b;
      stage = {r, fma(h, part_c, fma(h, part_b, r - a)), shifted};
    }
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes) {
    constexpr float kMain = 0.7615f;
    const Lanes r = stage.r, z = r * r, minus_slope = fma(z, lanes(0.40625f), lanes(-1.0f));
    const Lanes linear = fma(r * lanes(-0.125f), r, lanes(1 - kMain));
    const Lanes p = fma(z, horner<0, 1>(C::kHalfTurn, z), linear);
    const Lanes y = fma(r, lanes(kMain), fma(r, p, stage.excess * minus_slope));
    return apart(y, LastAsSign::of(stage.shifted));
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<FloatHalfTurns>(x); }
};
template <>
struct UnpermutedForm<fn::Sin, float> : FloatHalfTurns<false> {};
template <>
struct UnpermutedForm<fn::Cos, float> : FloatHalfTurns<true> {};

/// x + x P(x^2 - kNearMiddle) up to kNear; beyond, 1 - Q(t)^4 of t = |x| - kFarMiddle with what the
/// last sum of Q lost. t is exact and then loses its last three bits, which are 0 where erf is
/// steep: neighbours further out are either equal or further apart than rounding errors. Below
/// 0.97 ulp and monotone, tried on all arguments.
template <>
struct UnpermutedForm<fn::Erf, float> {
  using C = ErfSeries;
  struct Stage {
    Lanes near, root, low;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes&) {
    const Lanes size = size_of(x), w = fma(size, size, lanes(-C::kNearMiddle));
    const Lanes exact = at_most(size, C::kMost) - lanes(C::kFarMiddle);
    const Lanes t = (Lanes)((LaneBitsOf<float>)exact & ~7u), base = lanes(C::kRoot[0]);
    const Lanes slope = horner<1, 1>(C::kRoot, t), root = fma(slope, t, base);
    stage = {fma(x, horner<0, 1>(C::kNearTerms, w), x), root, fma(slope, t, base - root)};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    const Lanes root = stage.root, square = fma(root, root, (root + root) * stage.low);
    const Lanes far = minus_product(square, square, lanes(1.0f));
    return selected(chosen_beyond(size_of(x), C::kNear), either(far, sign_of(x)), stage.near);
  }
};

template <>
struct UnpermutedForm<fn::Tan, float> : TangentStages<LastAsSign> {};

}  // namespace
}  // namespace cuop::jit
#endif
