// Relatives of the logistic function in stages: by an inverse, with AVX-512 one of few digits, that
// is made good with what the quotient lacks.
#pragma once

#include "cuop/jit/cpu/lane_exponential_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit {
namespace {

/// e^y = power (1 + high + tail) of a power of two.
struct PowerParts {
  Lanes power, high, tail;
};
constexpr float kPowerScale = accurate::Format<float>::kPower + 1;
/// 2^n of n + kPowerScale.
[[gnu::always_inline]] inline Lanes power_of(Lanes shifted) {
  return (Lanes)((LaneBitsOf<float>)shifted << accurate::Format<float>::kMantissa);
}

/// factor / (1 + e^y): as fused_logistic.
[[gnu::always_inline]] inline Lanes logistic(Lanes factor, PowerParts e) {
  const Lanes one = lanes(1.0f), sum = one + e.power, missed = one - (sum - e.power);
  const Lanes divisor = fma(e.power, e.high + e.tail, sum);
  const Lanes low = fma(e.power, e.high, sum - divisor) + fma(e.power, e.tail, missed);
  const Lanes inverse = near_inverse(divisor), q = factor * inverse;
  const Lanes rest = fma(q, low, product_minus(q, divisor, factor));
  return minus_product(rest, inverse, q);
}

/// y = -x.
struct OfX {
  static constexpr float kMost = accurate::kMostQuick<float>;

  [[gnu::always_inline]] static PowerParts parts(Lanes x) {
    using C = accurate::Coefficients<float>;
    const Lanes shifted = fma(x, lanes(-C::kInvLn2), lanes(kPowerScale));
    const Lanes n = shifted - lanes(kPowerScale);
    const Lanes r = minus_product(n, lanes(C::kLn2Low), minus_product(n, lanes(C::kLn2High), -x));
    return {power_of(shifted), r, r * r * horner<0, 1>(accurate::Fused<float>::kExp, r)};
  }
};
/// y = -2 sqrt(2/pi) (x + 0.044715 x^3), in the unit of fused_gelu_tanh_exp.
struct OfCubic {
  static constexpr float kMost = accurate::kMostQuickCubic<float>;

  [[gnu::always_inline]] static PowerParts parts(Lanes x) {
    using C = accurate::Fused<float>;
    const Lanes linear = lanes(C::kGeluLinear), cubic = lanes(C::kGeluCubic);
    const Lanes z = x * x, z_low = product_minus(x, x, z), sum = fma(z, cubic, linear);
    const Lanes sum_low = fma(z_low, cubic, fma(z, cubic, linear - sum));
    const Lanes y = x * sum, low = minus_product(x, sum_low, minus_product(x, sum, y));
    const Lanes shifted = minus_product(y, lanes(C::kGeluPerUnit), lanes(kPowerScale));
    const Lanes n = shifted - lanes(kPowerScale);
    const Lanes high = minus_product(n, lanes(C::kGeluUnit), -y), r = high + low;  // high is exact
    const Lanes bend = fma(r, horner<0, 1>(C::kGeluExp, r), lanes(C::kGeluSlope));
    return {power_of(shifted), high, fma(r, bend, low)};
  }
};

/// x / (1 + e^y) for |x| up to kMost, where the doubt becomes 2. Below 1 ulp, tried on all
/// arguments.
template <class Exponent>
struct LogisticForm {
  static constexpr int kApart = 6;
  using Stage = PowerParts;
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes& doubt) {
    doubt = either(doubt, x * lanes(2 / Exponent::kMost));
    stage = Exponent::parts(x);
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    return logistic(x, stage);
  }
  [[gnu::always_inline]] static int unsure(Lanes x) { return unsure_of<LogisticForm>(x); }
};
#ifdef __AVX512F__  // shorter vectors gain nothing
template <>
struct LaneForm<fn::Silu, float> : LogisticForm<OfX> {};
#endif
template <>
struct LaneForm<fn::GeluTanh, float> : LogisticForm<OfCubic> {};

}  // namespace
}  // namespace cuop::jit
#endif
