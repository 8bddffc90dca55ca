// Relatives of the logistic function in stages: by an inverse, of a product with AVX-512 one of few
// digits, that is made good with what the quotient lacks. Exponents n are counted in units of 64 or
// 512, so that one of 128 or 1024 or more is 2 or more, which is its doubt.
#pragma once

#include "cuop/jit/cpu/lane_exponential_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit {
namespace {

template <class T>
constexpr T kPowerUnit = sizeof(T) == 4 ? 64 : 512;
template <class T>
constexpr T kPowerScale = (accurate::Format<T>::kPower + 1) / kPowerUnit<T>;
/// 2^n of n + kPowerScale.
template <class V>
[[gnu::always_inline]] inline V power_of(V shifted) {
  return (V)((BitsOfLanes<V>)shifted << accurate::Format<NumberOf<V>>::kMantissa);
}
/// factor / (1 + e^y) of e^y = power (1 + less), sum = 1 + power and what that missed.
template <class V>
[[gnu::always_inline]] inline V logistic(V factor, V power, V less, V sum, V missed) {
  const V one = lanes(NumberOf<V>(1));
  const V divisor = fma(power, less, sum), inverse = one / divisor, q = factor * inverse;
  const V low = fma(power, less, sum - divisor) + missed;
  const V rest = fma(q, low, product_minus(q, divisor, factor));
  return minus_product(rest, inverse, q);
}
/// The same of a power of two.
template <class V>
[[gnu::always_inline]] inline V logistic(V factor, V power, V less) {
  const V one = lanes(NumberOf<V>(1)), sum = one + power;
  return logistic(factor, power, less, sum, one - (sum - power));
}

/// -x = n ln 2 - r, and n + kPowerScale.
struct OppositeParts {
  Lanes shifted, r;
};
[[gnu::always_inline]] inline OppositeParts opposite_parts(Lanes x, Lanes& doubt) {
  using C = accurate::Coefficients<float>;
  constexpr float kUnit = kPowerUnit<float>, kScale = kPowerScale<float>;
  const Lanes shifted = fma(x, lanes(-C::kInvLn2 / kUnit), lanes(kScale));
  const Lanes n = shifted - lanes(kScale);
  doubt = either(doubt, n);
  const Lanes high = fma(n, lanes(C::kLn2High * kUnit), x);
  return {shifted, fma(n, lanes(C::kLn2Low * kUnit), high)};
}
/// (e^-r - 1 + r) / r^2.
[[gnu::always_inline]] inline Lanes opposite_rest(Lanes r) {
  constexpr const auto& kExp = accurate::Fused<float>::kExp;
  static constexpr float kTerms[] = {kExp[0], -kExp[1], kExp[2], -kExp[3], kExp[4]};
  return horner<0, 1>(kTerms, r);
}

/// 1 / (1 + e^-x). Below 1 ulp and monotone, tried on all arguments.
template <>
struct LaneForm<fn::Sigmoid, float> {
  static constexpr int kApart = 8;
  /// e^-x = power (1 + less).
  struct Stage {
    Lanes power, less;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const auto [shifted, r] = opposite_parts(x, doubt);
    stage = {power_of(shifted), product_minus(r * r, opposite_rest(r), r)};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& e, Lanes) {
    return logistic(lanes(1.0f), e.power, e.less);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};

/// e^y = 2^n (1 + high + tail), and n + kPowerScale.
template <class T>
struct PowerParts {
  LanesOf<T> shifted, high, tail;
};
/// factor / (1 + e^y) by its product with an inverse of few digits.
[[gnu::always_inline]] inline Lanes logistic(Lanes factor, const PowerParts<float>& e) {
  const Lanes one = lanes(1.0f), power = power_of(e.shifted);
  const Lanes sum = one + power, missed = one - (sum - power);
  const Lanes divisor = fma(power, e.high + e.tail, sum);
  const Lanes low = fma(power, e.high, sum - divisor) + fma(power, e.tail, missed);
  const Lanes inverse = near_inverse(divisor), q = factor * inverse;
  const Lanes rest = fma(q, low, product_minus(q, divisor, factor));
  return minus_product(rest, inverse, q);
}

/// Below 0.84 ulp, tried on every ninth argument.
template <>
struct LaneForm<fn::Silu, float> {
  static constexpr int kApart = 6;
  using Stage = PowerParts<float>;
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const auto [shifted, r] = opposite_parts(x, doubt);
    stage.shifted = shifted;
    stage.high = -r;
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    const Lanes r = stage.high;
    stage.tail = r * r * horner<0, 1>(accurate::Fused<float>::kExp, r);
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    return logistic(x, stage);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};

/// y = -2 sqrt(2/pi) (x + 0.044715 x^3), in the unit of fused_gelu_tanh_exp; `tail` is what `high`,
/// which is exact, lacks.
template <class T>
[[gnu::always_inline]] inline PowerParts<T> cubic_parts(LanesOf<T> x, LanesOf<T>& doubt) {
  using V = LanesOf<T>;
  using C = accurate::Fused<T>;
  constexpr T kUnit = kPowerUnit<T>, kScale = kPowerScale<T>;
  const V linear = lanes(C::kGeluLinear), cubic = lanes(C::kGeluCubic);
  const V z = x * x, z_low = product_minus(x, x, z), sum = fma(z, cubic, linear);
  const V sum_low = fma(z_low, cubic, fma(z, cubic, linear - sum));
  const V y = x * sum, low = minus_product(x, sum_low, minus_product(x, sum, y));
  const V shifted = minus_product(y, lanes(C::kGeluPerUnit / kUnit), lanes(kScale));
  const V n = shifted - lanes(kScale);
  doubt = either(doubt, n);
  return {shifted, minus_product(n, lanes(C::kGeluUnit * kUnit), -y), low};
}
/// Below 0.9 ulp, tried on all arguments.
template <>
struct LaneForm<fn::GeluTanh, float> {
  static constexpr int kApart = 8;
  using C = accurate::Fused<float>;
  using Stage = PowerParts<float>;  // first those of cubic_parts
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    stage = cubic_parts<float>(x, doubt);
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    const Lanes r = stage.high + stage.tail;
    const Lanes bend = fma(r, horner<0, 1>(C::kGeluExp, r), lanes(C::kGeluSlope));
    stage.tail = fma(r, bend, stage.tail);
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    return logistic(x, stage);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};
/// Below 1.25 ulp, tried on millions.
template <>
struct LaneForm<fn::GeluTanh, double> {
  static constexpr int kApart = 32 / kLanes<double>;
  using C = accurate::Fused<double>;
  /// First `less` is the rest of the exponent, then e^y = 2^n (1 + less).
  struct Stage {
    DoubleLanes shifted, less;
  };
  [[gnu::always_inline]] static void first(DoubleLanes x, Stage& stage, DoubleLanes& doubt) {
    const auto [shifted, high, tail] = cubic_parts<double>(x, doubt);
    stage = {shifted, high + tail};
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    const DoubleLanes r = stage.less;
    const DoubleLanes bend = fma(r, polynomial(C::kGeluExp, r), lanes(C::kGeluSlope));
    stage.less = fma(r, bend, r);
  }
  [[gnu::always_inline]] static DoubleLanes last(const Stage& e, DoubleLanes x) {
    return logistic(x, power_of(e.shifted), e.less);
  }
  [[gnu::always_inline]] static int unsure(DoubleLanes x) { return unsure_of<LaneForm>(x); }
};

#ifdef __AVX512F__
/// What each row's power of two lacks, by it, and what its logarithm lacks.
struct SoftplusRows {
  using Powers = PowerRows<double>;
  using Logs = LogRows<double>;
  double power_lacks[16], log_lacks[16];
  constexpr SoftplusRows() : power_lacks(), log_lacks() {
    for (int i = 0; i < 16; ++i) power_lacks[i] = Powers::kLacks[i] / Powers::kPowers[i];
    log_lacks[15] = Logs::kOfTwoRest;
  }
};
constexpr SoftplusRows kSoftplusRows;

/// factor / (1 + e^-x) by a table of powers of two. A power that is none of two and 1 miss
/// something in their sum, whichever is the larger one.
struct TabledLogistic {
  static constexpr int kApart = 6;
  using V = DoubleLanes;
  /// e^-x = power (1 + less).
  struct Stage {
    V power, less;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    using C = accurate::Coefficients<double>;
    constexpr const auto& kRest = PowerRows<double>::kRest;
    static constexpr double kTerms[] = {kRest[0], -kRest[1], kRest[2], -kRest[3], kRest[4]};
    const V whole = lanes(kSixteenths<double>);
    const V shifted = minus_product(x, lanes(C::kInvLn2), whole), n = shifted - whole;
    doubt = either(doubt, n * lanes(1 / kPowerUnit<double>));
    const V r = fma(n, lanes(C::kLn2Low), fma(n, lanes(C::kLn2High), x));  // -x = n ln 2 - r
    const V lack = of_interval(kSoftplusRows.power_lacks, shifted);
    const V rest = fma(r * r, horner<0, 1>(kTerms, r), lack);
    stage = {times_power(of_interval(PowerRows<double>::kPowers, shifted), n), rest - r};
  }
  [[gnu::always_inline]] static V quotient(V factor, const Stage& e) {
    const V one = lanes(1.0), sum = one + e.power;
    const V missed = smaller(e.power, one) - (sum - larger(e.power, one));
    return logistic(factor, e.power, e.less, sum, missed);
  }
};
/// Below 0.65 ulp and monotone, tried on millions.
template <>
struct LaneForm<fn::Sigmoid, double> : TabledLogistic {
  [[gnu::always_inline]] static V last(const Stage& e, V) { return quotient(lanes(1.0), e); }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
/// Below 0.8 ulp, tried on millions.
template <>
struct LaneForm<fn::Silu, double> : TabledLogistic {
  [[gnu::always_inline]] static V last(const Stage& e, V x) { return quotient(x, e); }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};

/// max(x, 0) + log(1 + e) of e = e^-|x|: the row of 1 + e has its factor c, about 1 / (1 + e), and
/// T, with which the logarithm is T + log(1 + r), r = c (1 + e) - 1. Neighbours have results nearer
/// to each other than an ulp: what is rounded on the way is made good. Below 0.9 ulp, 1.1 of
/// subnormal results, and monotone, tried on millions.
template <>
struct LaneForm<fn::Softplus, double> {
  static constexpr int kApart = 6;
  using V = DoubleLanes;
  /// First n and what the larger part of n ln 2 leaves, then e in two parts.
  struct Stage {
    V high, low;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    using C = accurate::Coefficients<double>;
    const V minus = either(x, lanes(-0.0)), whole = lanes(kSixteenths<double>);  // -|x|
    const V shifted = fma(minus, lanes(C::kInvLn2), whole), n = shifted - whole;
    // Next to 0 but not 0, as doubt_of_softplus.
    constexpr auto kNear = std::bit_cast<int64_t>(accurate::kNearSoftplus<double>) - 1;
    const auto less = (__m512i)((LaneBitsOf<double>)minus - (kSignBit<V> + 1));
    const __mmask8 near = _mm512_cmp_epu64_mask(less, _mm512_set1_epi64(kNear), _MM_CMPINT_LT);
    doubt = _mm512_mask_mov_pd(either(doubt, n * lanes(1.0 / 512)), near, lanes(2.0));
    stage = {shifted, minus_product(n, lanes(C::kLn2High), minus)};
  }
  [[gnu::always_inline]] static void middle(Stage& stage) {
    using Rows = PowerRows<double>;
    const V shifted = stage.high, n = shifted - lanes(kSixteenths<double>);
    const V ln2_low = lanes(accurate::Coefficients<double>::kLn2Low);
    const V r = minus_product(n, ln2_low, stage.low),
            lost = minus_product(n, ln2_low, stage.low - r);
    const V rest = lost + of_interval(kSoftplusRows.power_lacks, shifted);
    const V tail = fma(r * r, horner<0, 1>(Rows::kRest, r), rest);
    const V power = times_power(of_interval(Rows::kPowers, shifted), n);
    const V less = r + tail, less_low = tail - (less - r);
    stage.high = fma(power, less, power);
    stage.low = fma(power, less_low, fma(power, less, power - stage.high));
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    using Rows = LogRows<double>;
    const __m512i row = row_of(at_most(lanes(1.0) + stage.high, 1.99));
    const V c = of_row(Rows::kFactors, row), r = fma(stage.high, c, c - lanes(1.0)), square = r * r;
    const V slope = minus_product(r, c, c);
    const V lack = fma(stage.low, slope, of_row(kSoftplusRows.log_lacks, row));
    const V low = fma(log_rest<Rows>(r, square), square, lack);
    const V base = of_row(Rows::kLogs, row), sum = base + r, lost = r - (sum - base);
    const V ramp = larger(x, V{}), most = larger(ramp, sum), least = smaller(ramp, sum);
    const V y = most + least;
    return y + ((least - (y - most)) + (lost + low));
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
#endif

}  // namespace
}  // namespace cuop::jit
#endif
