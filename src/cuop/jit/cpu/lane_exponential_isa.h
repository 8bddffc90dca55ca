// Exponential functions of vectors of AVX-512, whose permutations fetch one of 16 powers of two and
// which multiply by a power of two in one operation, also where the result is subnormal.
#pragma once

#include "cuop/jit/cpu/lane_logarithm_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include "cuop/jit/cpu/exp_tables.h"

namespace cuop::jit {
namespace {

/// Of each lane the number that the last four bits of `shifted` name.
[[gnu::always_inline]] inline DoubleLanes of_interval(const double (&table)[16],
                                                      DoubleLanes shifted) {
  return of_row(table, _mm512_castpd_si512(shifted));
}
template <class T>
constexpr T kSixteenths = accurate::Format<T>::kWhole / 16;

/// x brought to where no result is a number between the least and the largest one.
[[gnu::always_inline]] inline Lanes within_powers(Lanes x, float low, float high) {
  return at_most(at_least(x, low), high);
}
[[gnu::always_inline]] inline DoubleLanes within_powers(DoubleLanes x, double low, double high) {
  const DoubleLanes bounded = _mm512_maskz_max_pd(static_cast<__mmask8>(kAll), lanes(low), x);
  return at_most(bounded, high);
}
/// (T + (T p + what T lacks)) 2^floor(n).
template <class V>
[[gnu::always_inline]] inline V power_result(V shifted, V n, V p) {
  using Rows = PowerRows<NumberOf<V>>;
  const V power = of_interval(Rows::kPowers, shifted);
  return times_power(power + fma(power, p, of_interval(Rows::kLacks, shifted)), n);
}

/// Of float below 0.57 ulp, of subnormal results 0.77, tried on all arguments; of double below
/// 0.72, tried on millions; monotone.
template <std::floating_point T>
struct LaneForm<fn::Exp2, T> {
  using V = LanesOf<T>;
  [[gnu::always_inline]] static V apply(V given) {
    constexpr bool kIsFloat = sizeof(T) == 4;
    const V x = within_powers(given, kIsFloat ? T(-160) : T(-1100), kIsFloat ? T(130) : T(1030));
    const V shifted = x + lanes(kSixteenths<T>), n = shifted - lanes(kSixteenths<T>), r = x - n;
    const V square = (r * r) * horner<0, 1>(PowerRows<T>::kRestOfTwo, r);
    return power_result(shifted, n, fma(r, lanes(accurate::Coefficients<T>::kLn2), square));
  }
};
template <std::floating_point T>
struct LaneForm<fn::Exp, T> {
  using V = LanesOf<T>;
  using C = accurate::Coefficients<T>;
  [[gnu::always_inline]] static V apply(V given) {
    constexpr bool kIsFloat = sizeof(T) == 4;
    const V x = within_powers(given, kIsFloat ? T(-110) : T(-760), kIsFloat ? T(90) : T(710));
    const V shifted = fma(x, lanes(C::kInvLn2), lanes(kSixteenths<T>));
    const V n = shifted - lanes(kSixteenths<T>);
    const V high = minus_product(n, lanes(C::kLn2High), x);
    const V r = minus_product(n, lanes(C::kLn2Low), high);
    return power_result(shifted, n, fma(r * r, horner<0, 1>(PowerRows<T>::kRest, r), r));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
