// Relatives of the logistic function in stages: by an inverse, of a product with AVX-512 one of few
// digits, that is made good with what the quotient lacks. Exponents n are counted in units of 64,
// so that one of 128 or more is 2 or more, which is its doubt.
#pragma once

#include "cuop/jit/cpu/lane_exponential_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit {
namespace {

constexpr float kPowerUnit = 64, kPowerScale = (accurate::Format<float>::kPower + 1) / kPowerUnit;
/// 2^n of n + kPowerScale.
[[gnu::always_inline]] inline Lanes power_of(Lanes shifted) {
  return (Lanes)((LaneBitsOf<float>)shifted << accurate::Format<float>::kMantissa);
}

/// -x = n ln 2 - r, and n + kPowerScale.
struct OppositeParts {
  Lanes shifted, r;
};
[[gnu::always_inline]] inline OppositeParts opposite_parts(Lanes x, Lanes& doubt) {
  using C = accurate::Coefficients<float>;
  const Lanes shifted = fma(x, lanes(-C::kInvLn2 / kPowerUnit), lanes(kPowerScale));
  const Lanes n = shifted - lanes(kPowerScale);
  doubt = either(doubt, n);
  const Lanes high = fma(n, lanes(C::kLn2High * kPowerUnit), x);
  return {shifted, fma(n, lanes(C::kLn2Low * kPowerUnit), high)};
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
    const Lanes one = lanes(1.0f), sum = one + e.power, missed = one - (sum - e.power);
    const Lanes divisor = fma(e.power, e.less, sum), inverse = one / divisor;
    const Lanes low = fma(e.power, e.less, sum - divisor) + missed;
    const Lanes rest = fma(inverse, low, product_minus(inverse, divisor, one));
    return minus_product(rest, inverse, inverse);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};

/// e^y = 2^n (1 + high + tail), and n + kPowerScale.
struct PowerParts {
  Lanes shifted, high, tail;
};
/// factor / (1 + e^y): as fused_logistic.
[[gnu::always_inline]] inline Lanes logistic(Lanes factor, PowerParts e) {
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
  static constexpr int kApart = 8;
  using Stage = PowerParts;
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const auto [shifted, r] = opposite_parts(x, doubt);
    stage = {shifted, -r, r * r * opposite_rest(r)};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    return logistic(x, stage);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LaneForm>(x); }
};

/// y = -2 sqrt(2/pi) (x + 0.044715 x^3), in the unit of fused_gelu_tanh_exp. First `tail` is what
/// `high`, which is exact, lacks. Below 0.9 ulp, tried on all arguments.
template <>
struct LaneForm<fn::GeluTanh, float> {
  static constexpr int kApart = 8;
  using C = accurate::Fused<float>;
  using Stage = PowerParts;
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    const Lanes linear = lanes(C::kGeluLinear), cubic = lanes(C::kGeluCubic);
    const Lanes z = x * x, z_low = product_minus(x, x, z), sum = fma(z, cubic, linear);
    const Lanes sum_low = fma(z_low, cubic, fma(z, cubic, linear - sum));
    const Lanes y = x * sum, low = minus_product(x, sum_low, minus_product(x, sum, y));
    const Lanes shifted = minus_product(y, lanes(C::kGeluPerUnit / kPowerUnit), lanes(kPowerScale));
    const Lanes n = shifted - lanes(kPowerScale);
    doubt = either(doubt, n);
    stage = {shifted, minus_product(n, lanes(C::kGeluUnit * kPowerUnit), -y), low};
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

}  // namespace
}  // namespace cuop::jit
#endif
