// atan of float in stages.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/kernels/accurate/inverse_circular.h"

namespace cuop::jit {
namespace {

/// q 13/16 + q P(q^2 - 1/2) of q = |x|; beyond 1 of its reciprocal, from -pi/2, and the other sign.
/// P is small where q is nearly 1 and its rounding errors count most. Below 1 ulp and monotone,
/// tried on all arguments.
template <>
struct LaneForm<fn::Atan, float> {
  using C = accurate::Coefficients<float>;
  static constexpr int kApart = 6;
  struct Stage {
    Lanes q, base, w;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes&) {
    const Lanes size = size_of(x), far = only(chosen_beyond(size, 1.0f), lanes(-C::kHalfPi));
    const Lanes q = at_most(size, 1.0f) / at_least(size, 1.0f);
    stage = {q, far, fma(q, q, lanes(-0.5f))};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    constexpr float kMain = 0.8125f, kRest = C::kHalfPiRest / C::kHalfPi;
    const Lanes q = stage.q, base = stage.base;
    const Lanes p = horner<0, 1>(accurate::Fused<float>::kAtan, stage.w);
    const Lanes high = fma(q, lanes(kMain), base);
    const Lanes low = fma(base, lanes(kRest), fma(q, lanes(kMain), base - high));
    return apart(high + fma(q, p, low), sign_of(apart(x, base)));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
