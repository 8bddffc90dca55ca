// log1p and the inverse hyperbolic functions of vectors of AVX-512, from the logarithm's tables.
#pragma once

#include "cuop/jit/cpu/lane_logarithm_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include <concepts>

namespace cuop::jit {
namespace {

/// log(u + low): next to 1 that of 1 + r + r_low, where r_low may be nearly as
/// large as r.
template <class V>
[[gnu::always_inline]] inline V log_of_sum(V u, V low) {
  using T = NumberOf<V>;
  using Rows = LogRows<T>;
  const LogParts<Rows, V> parts(u);
  const V r = parts.residue(), square = r * r;
  const V r_low = low * times_power(parts.c, lanes(T(-0.0)) - parts.e);
  const V high = fma(parts.e, lanes(Rows::kOfTwo), parts.log), rest = parts.lack();
  const V p = log_rest<Rows>(r, square), sum = high + r, lost = r - (sum - high);
  const V bend = fma(r_low, lanes(T(0.5)), r);
  const V share = minus_product(bend, r_low, r_low);  // of r_low
  return log_result(u, sum + (lost + (share + fma(p, square, rest))));
}
/// 1 / x nearly: exactly of 1, an eighth too much at most.
template <class V>
[[gnu::always_inline]] inline V rough_inverse(V x) {
  constexpr auto kTwice = 2 * std::bit_cast<accurate::BitsOf<NumberOf<V>>>(NumberOf<V>(1));
  return (V)(kTwice - (BitsOfLanes<V>)x);
}
/// Of arguments whose squares may not be finite.
template <class V>
[[gnu::always_inline]] inline V doubt_of_area(V x) {
  using T = NumberOf<V>;
  return x * lanes(sizeof(T) == 4 ? T(0x1p-59) : T(0x1p-499));
}
/// Of a root that is under way: of what, in two parts.
template <class T>
struct AreaStage {
  using V = LanesOf<T>;
  V root, h_low, h;

  /// What the root of h + h_low lacks.
  [[gnu::always_inline]] V rest_of_root() const {
    const V rest = minus_product(root, root, h) + h_low;
    return (lanes(T(0.5)) * rest) * rough_inverse(root);
  }
};

/// Of log(1 + v): the row's factor by 2^-e, and r. The factor has so few digits that it less 1 is
/// exact, unless the logarithm is large.
struct LogOfOneAnd {
  DoubleLanes u;
  LogParts<LogRows<double>, DoubleLanes> parts;
  DoubleLanes factor, r;

  [[gnu::always_inline]] explicit LogOfOneAnd(DoubleLanes v) : u(lanes(1.0) + v), parts(u) {
    factor = times_power(parts.c, lanes(-0.0) - parts.e);
    r = fma(factor, v, factor - lanes(1.0));
  }
  [[gnu::always_inline]] DoubleLanes value() const { return log_result(u, parts.log_with(r)); }
  /// The logarithm of 1 + v + low.
  [[gnu::always_inline]] DoubleLanes value_with(DoubleLanes low) const {
    return log_result(u, parts.log_with(r, fma(factor, low, parts.lack())));
  }
};

/// Below 0.8 ulp, as the functions that follow: of float tried on an eighth of all arguments, of
/// double on millions.
template <>
struct LaneForm<fn::Log1p, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    // What u lost, of which either may be the larger one.
    const Lanes one = lanes(1.0f), u = one + x, part = u - one;
    const Lanes lost = (one - (u - part)) + (x - part);
    return with_sign(log_of_sum(u, lost), x);
  }
};
template <>
struct LaneForm<fn::Log1p, double> {
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x) {
    return with_sign(LogOfOneAnd(x).value(), x);
  }
};
/// Of |x| + sqrt(x^2 + 1).
template <std::floating_point T>
struct LaneForm<fn::Asinh, T> {
  using V = LanesOf<T>;
  static constexpr int kApart = 6;
  using Stage = AreaStage<T>;
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    const V h = fma(x, x, lanes(T(1.0)));
    doubt = either(doubt, doubt_of_area(x));
    stage = {root_of(h), fma(x, x, lanes(T(1.0)) - h), h};
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V size = size_of(x), root = stage.root, u = root + size;
    // Exact: the root is the larger one.
    const V low = (size - (u - root)) + stage.rest_of_root();
    return with_sign(log_of_sum(u, low), x);
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
/// Of x + sqrt(x^2 - 1), from x - 1, which is exact.
template <std::floating_point T>
struct LaneForm<fn::Acosh, T> {
  using V = LanesOf<T>;
  static constexpr int kApart = 6;
  using Stage = AreaStage<T>;
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    const V t = x - lanes(T(1.0)), twice = t + t, h = fma(t, t, twice);
    doubt = either(doubt, doubt_of_area(x));
    // NaN below 1.
    stage = {root_of(either(h, sign_of(t))), fma(t, t, twice - h), h};
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V root = stage.root, u = x + root;
    const V low = (root - (u - x)) + stage.rest_of_root();
    return log_of_sum(u, low);
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
/// The rows' logarithms, in the last two as much of log(2) as one number holds.
struct RoundedLogs {
  alignas(64) float rows[32];
  constexpr RoundedLogs() : rows() {
    for (int i = 0; i < 32; ++i) {
      rows[i] = i < 30 ? LogRows<float>::kLogs[i] : accurate::Coefficients<float>::kLn2;
    }
  }
};
constexpr RoundedLogs kRoundedLogs;
/// Up to 1/2 by a polynomial, beyond half the logarithm of (1 + |x|) / (1 - |x|), which is at least
/// log(3): beside it what its parts are rounded by is small.
template <>
struct LaneForm<fn::Atanh, float> {
  using Rows = LogRows<float>;
  static constexpr int kApart = 8;
  /// The quotient and what its logarithm lacks.
  struct Stage {
    Lanes q, low;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const Lanes one = lanes(1.0f), a = size_of(x), n = one + a, d = one - a;
    const Lanes inverse = one / d, q = n * inverse;
    const Lanes rest = minus_product(q, d, n) + (a - (n - one));
    doubt = either(doubt, a + a);
    stage = {q, rest * fma(n, lanes(-1.0f / 3), lanes(7.0f / 6))};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    const Lanes e = exponent_of(stage.q), m = mantissa_of(stage.q);
    const __m512i row = row_of(m);
    const Lanes r = fma(m, of_row(Rows::kFactors, row), lanes(-1.0f)), square = r * r;
    const Lanes low = fma(square, horner<0, 1>(Rows::kRest, r), stage.low);
    const Lanes share = of_row(kRoundedLogs.rows, row) + (r + low);
    const Lanes log = fma(e, lanes(accurate::Coefficients<float>::kLn2), share);
    const Lanes a = size_of(x), z = x * x;
    const Lanes near = fma(a * z, horner<0, 1>(accurate::Fused<float>::kAtanh, z), a);
    const auto is_far = chosen_beyond(a, 0.5f);
    return either(selected(is_far, lanes(0.5f) * log, near), sign_of(x));
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};
/// Half the logarithm of (1 + |x|) / (1 - |x|) = 1 + v.
template <>
struct LaneForm<fn::Atanh, double> {
  using T = double;
  using V = DoubleLanes;
  static constexpr int kApart = 6;
  struct Stage {
    V inverse;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V&) {
    stage.inverse = lanes(T(1.0)) / (lanes(T(1.0)) - size_of(x));
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V one = lanes(T(1.0)), a = size_of(x), d = one - a, d_low = (one - d) - a;
    const V n = a + a, v = n * stage.inverse;
    const V rest = minus_product(v, d_low, minus_product(v, d, n));
    const V y = LogOfOneAnd(v).value_with(rest * stage.inverse);
    return with_sign(lanes(T(0.5)) * y, x);
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
