// tan and atan in stages.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/cpu/lane_coefficients.h"
#include "cuop/jit/kernels/accurate/inverse_circular.h"

namespace cuop::jit {
namespace {

/// x = h pi/2 + r - excess; the last bit of `shifted` is that of h.
template <class V>
struct QuarterTurn {
  V r, excess, shifted;
};
/// h is counted in units of 2^kUnit, so that one that is too large is 2 or more, which is its
/// doubt. h B is exact of float; of double it is rounded before it is subtracted, so that r is
/// exact where it is nearly nothing.
template <class Angle, int kUnit, class V>
[[gnu::always_inline]] inline QuarterTurn<V> quarter_turn(V x, V& doubt) {
  using T = NumberOf<V>;
  constexpr T kScale = T(1 << kUnit), kWhole = accurate::Format<T>::kWhole / kScale;
  const V part_b = lanes(Angle::kB * kScale);
  const V shifted = fma(x, lanes(Angle::kTwoOver / kScale), lanes(kWhole));
  const V h = shifted - lanes(kWhole), a = minus_product(h, lanes(Angle::kA * kScale), x);
  const V part = h * part_b, r = a - part;
  const V excess = sizeof(T) == 4 ? part - (a - r) : fma(h, part_b, r - a);
  doubt = either(doubt, h);
  return {r, fma(h, lanes(Angle::kC * kScale), excess), shifted};
}

/// t = r + r P(r^2 - 3/8), in odd quarters -1 by that. P is small where r is, and what rounds its
/// argument is small where P is not. The excess counts by the slope 1 + t^2, nearly 1 + 3.7 P.
/// Below 1 ulp, tried on all arguments. `Odd::of` chooses the lanes whose last bit is 1.
template <class Odd>
struct TangentStages {
  static constexpr int kApart = 6;
  /// t = r - less; first `less` is the excess.
  struct Stage {
    Lanes r, less, shifted;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const auto [r, excess, shifted] = quarter_turn<RightAngle, 12>(x, doubt);
    stage = {r, excess, shifted};
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    const Lanes r = stage.r, excess = stage.less;
    const Lanes p = polynomial(accurate::Fused<float>::kTangent, fma(r, r, lanes(-0.375f)));
    stage.less = minus_product(r, p, fma(excess * lanes(3.7f), p, excess));
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes) {
    const Lanes t = stage.r - stage.less, inverse = near_inverse(t);
    const Lanes rest = minus_product(stage.r, inverse, lanes(1.0f));
    const Lanes error = fma(stage.less, inverse, rest);
    return selected(Odd::of(stage.shifted), fma(-error, inverse, -inverse), t);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<TangentStages>(x); }
};
struct OddLanes {
  [[gnu::always_inline]] static ChosenLanes of(Lanes x) { return odd_lanes(x); }
};
template <>
struct LaneForm<fn::Tan, float> : TangentStages<OddLanes> {};

/// r by C = r / tan(r), a number and v P(v) of v = r^2 less another, in odd quarters C by -r; what
/// r and C lack counts by the slope of the tangent t, which is 1 + t^2. P adds where Horner's form
/// multiplies, beside products and not before them. Below 1.4 ulp, tried on millions and on the
/// neighbours of many multiples of pi/2.
template <>
struct LaneForm<fn::Tan, double> {
  static constexpr int kApart = 32 / kLanes<double>;
  struct Angle : accurate::HalfPi {
    static constexpr double kTwoOver = 2 * accurate::kInvPi;
  };
  /// `low` is the excess, then with it what C lacks, by r.
  struct Stage {
    DoubleLanes r, low, shifted, c;
  };
  [[gnu::always_inline]] static void first(DoubleLanes x, Stage& stage, DoubleLanes& doubt) {
    const QuarterTurn<DoubleLanes> turn = quarter_turn<Angle, 19>(x, doubt);
    stage.r = turn.r;
    stage.low = turn.excess;
    stage.shifted = turn.shifted;
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    using Series = CotangentSeries;
    const DoubleLanes v = fma(stage.r, stage.r, lanes(-Series::kMiddle));
    const DoubleLanes y = v + lanes(Series::kShift), square = y * y;
    DoubleLanes p = horner<0, 1>(Series::kTop, y);
    for (int k = 0; k < 3; ++k) {
      p = fma(square - lanes(Series::kRoots[k]), p, lanes(Series::kSteps[k]));
    }
    const DoubleLanes part = v * p, base = lanes(Series::kBase);
    stage.c = base + part;
    stage.low = fma(part - (stage.c - base), stage.r, stage.low);
  }
  [[gnu::always_inline]] static DoubleLanes last(const Stage& stage, DoubleLanes) {
    const DoubleLanes q = turned_quotient(odd_lanes(stage.shifted), stage.r, stage.c);
    return minus_product(stage.low, fma(q, q, lanes(1.0)), q);
  }
  [[gnu::always_inline]] static int unsure(DoubleLanes x) { return unsure_of<LaneForm>(x); }
};

/// q 13/16 + q P(q^2 - 1/2) of q = |x|; beyond 1 of its reciprocal, from -pi/2, and the other sign.
/// P is small where q is nearly 1 and its rounding errors count most. Below 1 ulp and monotone,
/// tried on all arguments.
template <>
struct LaneForm<fn::Atan, float> {
  using C = accurate::Coefficients<float>;
  static constexpr int kApart = 8;
  struct Stage {
    Lanes q, base;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes&) {
    const Lanes size = size_of(x), far = only(chosen_beyond(size, 1.0f), lanes(-C::kHalfPi));
    const Lanes q = at_most(size, 1.0f) / at_least(size, 1.0f);
    stage = {q, far};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    constexpr float kMain = 0.8125f, kRest = C::kHalfPiRest / C::kHalfPi;
    const Lanes q = stage.q, base = stage.base;
    const Lanes p = polynomial(accurate::Fused<float>::kAtan, fma(q, q, lanes(-0.5f)));
    const Lanes high = fma(q, lanes(kMain), base);
    const Lanes low = fma(base, lanes(kRest), fma(q, lanes(kMain), base - high));
    return apart(high + fma(q, p, low), sign_of(apart(x, base)));
  }
};

/// q + q^3 P(q^2) by the tangent of the distance to 0, pi/4 or pi/2: each has a third of the
/// angles. What |x| + 1 loses is left out, less than an ulp of a number below 0.3. Below 1.05 ulp,
/// tried on millions.
template <>
struct LaneForm<fn::Atan, double> {
  using C = accurate::Coefficients<double>;
  static constexpr int kApart = 6;
  struct Stage {
    DoubleLanes q, base;
  };
  [[gnu::always_inline]] static void first(DoubleLanes x, Stage& stage, DoubleLanes&) {
    const DoubleLanes size = size_of(x), one = lanes(1.0);
    const auto middle = chosen_beyond(size, accurate::kAtanNear);
    const auto far = chosen_beyond(size, accurate::kAtanFar);
    const DoubleLanes n = selected(far, lanes(-1.0), selected(middle, size - one, size));
    const DoubleLanes d = selected(far, size, selected(middle, size + one, one));
    const DoubleLanes base = only(middle, lanes(C::kHalfPi / 2));
    stage = {n / d, selected(far, lanes(C::kHalfPi), base)};
  }
  [[gnu::always_inline]] static DoubleLanes last(const Stage& stage, DoubleLanes x) {
    constexpr double kRest = C::kHalfPiRest / C::kHalfPi;
    const DoubleLanes q = stage.q, base = stage.base, z = q * q, square = z * z;
    const auto& terms = accurate::Fused<double>::kAtan;
    const DoubleLanes p = fma(horner<1, 2>(terms, square), z, horner<0, 2>(terms, square));
    const DoubleLanes high = base + q, low = fma(base, lanes(kRest), q - (high - base));
    return with_sign(high + fma(q * z, p, low), x);
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
