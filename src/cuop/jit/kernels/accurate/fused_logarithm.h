// log, log2 and log10 of positive normal numbers where there are fused operations: x = 2^k (1 + f)
// with 1 + f in [sqrt(1/2), sqrt(2)). The factor of f is rounded with the sum alone.
//
// For float log(1 + f) = f + f^2 P(f), without a division: below 1 ulp, tried on all positive
// normal numbers. log2 and log10 of double take their tail from the logarithm's: largest error
// found in millions of arguments 1.05 ulp.
#pragma once

#include "cuop/jit/kernels/accurate/logarithm.h"

namespace cuop::jit::accurate {

struct SingleLogArgument {
  float k, f;
};
CUOP_FN SingleLogArgument single_log_argument(float x) {
  using F = Format<float>;
  const auto k = static_cast<int32_t>(bits_of(x) - F::kRootHalf) >> F::kMantissa;
  const float m = from_bits<float>(bits_of(x) - (static_cast<uint32_t>(k) << F::kMantissa));
  return {static_cast<float>(k), m - 1};
}

CUOP_FN float fused_log(float x) {
  using C = Coefficients<float>;
  const auto [k, f] = single_log_argument(x);
  const float y = math::fma(f * f, polynomial(Fused<float>::kLog, f), f);
  return math::fma(k, C::kLn2High, math::fma(k, C::kLn2Low, y));
}
CUOP_FN float fused_log2(float x) {
  using C = Fused<float>;
  const auto [k, f] = single_log_argument(x);
  const float rest = math::fma(f * f, polynomial<1>(C::kLog2, f), C::kInvLn2Low);
  return k + math::fma(f, C::kInvLn2High, f * math::fma(f, C::kLog2[0], rest));
}
CUOP_FN float fused_log10(float x) {
  using C = Fused<float>;
  using L = Coefficients<float>;
  const auto [k, f] = single_log_argument(x);
  const float low = math::fma(k, L::kLog10Of2Low, f * C::kInvLn10Low);
  const float tail = math::fma(f * f, polynomial(C::kLog10, f), low);
  return math::fma(k, L::kLog10Of2High, math::fma(f, C::kInvLn10High, tail));
}

/// log(1 + f) / log(base): f's own share has the factor in two parts.
CUOP_FN double fused_log2(double x) {
  using C = Fused<double>;
  const LogArgument<double> a = split(x);
  const double f = a.m - 1, tail = log_tail(f) - 0.5 * f * f;
  const double low = math::fma(tail, C::kInvLn2High, f * C::kInvLn2Low);
  return a.k + math::fma(f, C::kInvLn2High, low);
}
CUOP_FN double fused_log10(double x) {
  using C = Fused<double>;
  using L = Coefficients<double>;
  const LogArgument<double> a = split(x);
  const double f = a.m - 1, tail = log_tail(f) - 0.5 * f * f;
  const double lack = math::fma(f, C::kInvLn10Low, a.k * L::kLog10Of2Low);
  const double low = math::fma(tail, C::kInvLn10High, lack);
  return math::fma(a.k, L::kLog10Of2High, math::fma(f, C::kInvLn10High, low));
}

}  // namespace cuop::jit::accurate
