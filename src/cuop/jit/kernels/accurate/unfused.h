// tan, the logistic function and its relatives of double for processors without fused operations,
// where a product with its rounding error takes a dozen steps: few of them, and quotients as they
// are rounded where nothing has to be monotone. Below 1.4 ulp, tried on millions.
#pragma once

#include "cuop/jit/kernels/accurate/circular.h"
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::accurate {

/// The quotient of r + r^3 N(r^2) and 1 - r^2 / 2 + r^4 D(r^2), each with what its rounding lost;
/// in odd quarters that of the second and the first, negative.
CUOP_FN double unfused_tan(double x) {
  using C = Coefficients<double>;
  const Whole k = nearest(x * (2 * kInvPi));
  const auto [r, r_low] = reduced<HalfPi>(x, k.value);
  const double z = r * r, head = upper_half(r), half = 0.5 * z, first = 1 - half;
  const double half_low = 0.5 * ((head * head - z) + (r - head) * (r + head)) + r * r_low;
  const double bend = z * z * horner(C::kTangentBelow, z), cosine = first + bend;
  const double cosine_low = ((first - cosine) + bend) + (((1 - first) - half) - half_low);
  const double tail = r * z * horner(C::kTangentAbove, z) + r_low, sine = r + tail;
  const auto [n, d] = exchanged(sine, cosine, k.bits);
  const auto [n_low, d_low] = exchanged((r - sine) + tail, cosine_low, k.bits);
  const double q = n / d, inverse = 1 / d;
  const double y = q + (n_low - q * d_low) * inverse;
  return x == 0 ? x : from_bits<double>(bits_of(y) ^ k.bits << 63);
}

/// factor / (1 + e^-(y + y_low)), the quotient's own rounding made good if so asked.
template <bool is_exact>
CUOP_FN double unfused_logistic(double factor, double y, double y_low) {
  using C = Coefficients<double>;
  constexpr double kScale = Format<double>::kPower + 1;
  const double shifted = kScale - (y + y_low) * C::kInvLn2, n = shifted - kScale;
  const double r = (n * -C::kLn2High - y) + (n * -C::kLn2Low - y_low);
  const double power = pow2_half(shifted), less = r + r * r * polynomial(C::kExp, r);
  const double sum = 1 + power, missed = 1 - (sum - power);
  const double part = power * less, divisor = sum + part;  // |part| is less than sum / 2
  const double low = (part - (divisor - sum)) + missed;
  if constexpr (is_exact) {
    const Sum<double> q = short_quotient(Sum<double>{factor, 0.0}, Sum<double>{divisor, low});
    return q.high + q.low;
  } else {
    const double q = factor / divisor, inverse = 1 / divisor;
    return q - q * low * inverse;
  }
}

CUOP_FN double unfused_sigmoid(double x) { return unfused_logistic<true>(1.0, x, 0.0); }
CUOP_FN double unfused_silu(double x) {
  return math::copysign(unfused_logistic<false>(x, x, 0.0), x);
}

/// The argument of the logistic function from x = head + rest, where head has 13 digits, so that
/// its share of both terms is exact.
CUOP_FN double unfused_gelu_tanh(double x) {
  using C = Coefficients<double>;
  constexpr uint64_t kHead = 0xffffff0000000000;
  const double head = from_bits<double>(bits_of(x) & kHead), rest = x - head;
  const double z = head * head, cube = z * head;
  const Sum<double> y = two_sum(head * C::kGeluLinearShort, cube * C::kGeluCubicShort);
  const double slope = C::kGeluLinear + C::kGeluCubic * (3 * z + rest * (3 * head + rest));
  const double left = head * C::kGeluLinearShortRest + cube * C::kGeluCubicShortRest;
  const double low = y.low + (rest * slope + left);
  return math::copysign(unfused_logistic<false>(x, y.high, low), x);
}

}  // namespace cuop::jit::accurate
