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
/// What is left of x by multiples of 1/16; 0 of infinities.
[[gnu::always_inline]] inline Lanes sixteenth_rest(Lanes x) {
  return _mm512_maskz_reduce_ps(kAll, x, 4 << 4);
}
[[gnu::always_inline]] inline DoubleLanes sixteenth_rest(DoubleLanes x) {
  return _mm512_maskz_reduce_pd(static_cast<__mmask8>(kAll), x, 4 << 4);
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
  [[gnu::always_inline]] static V apply(V x) {
    const V r = sixteenth_rest(x), n = x - r, shifted = n + lanes(kSixteenths<T>);
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

/// Half of each row's power of two, and what it lacks, by the power.
template <class T>
struct HalvedPowers {
  T powers[16], lacks[16];
  constexpr HalvedPowers() : powers(), lacks() {
    for (int i = 0; i < 16; ++i) {
      powers[i] = PowerRows<T>::kPowers[i] / 2;
      lacks[i] = PowerRows<T>::kLacks[i] / PowerRows<T>::kPowers[i];
    }
  }
};
template <class T>
constexpr HalvedPowers<T> kHalvedPowers;
/// cosh(r) - 1, of z = r^2, and sinh(r) for |r| up to ln(2) / 32.
template <class V>
[[gnu::always_inline]] inline V short_even(V z) {
  if constexpr (sizeof(NumberOf<V>) == 4) {
    return z * fma(z, lanes(1.0f / 24), lanes(0.5f));
  } else {
    return z * fma(z, fma(z, lanes(1.0 / 720), lanes(1.0 / 24)), lanes(0.5));
  }
}
template <class V>
[[gnu::always_inline]] inline V short_odd(V r, V z) {
  if constexpr (sizeof(NumberOf<V>) == 4) {
    return fma(r * z, lanes(1.0f / 6), r);
  } else {
    const V rest = fma(z, fma(z, lanes(1.0 / 5040), lanes(1.0 / 120)), lanes(1.0 / 6));
    return fma(r * z, rest, r);
  }
}
template <class T>
struct ReducedExponent {
  LanesOf<T> up, r;
};
/// By |x| = n ln 2 + r, n a multiple of 1/16, and the halves p and q of 2^n and 2^-n: p + q + (p +
/// q) (cosh r - 1) + (p - q) sinh r. Below 0.6 ulp and monotone, of float tried on all arguments,
/// of double on millions.
template <std::floating_point T>
struct LaneForm<fn::Cosh, T> {
  static constexpr int kApart = 6;
  using V = LanesOf<T>;
  using Stage = ReducedExponent<T>;
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    using C = accurate::Coefficients<T>;
    constexpr T kDoubtful = sizeof(T) == 4 ? T(1.0 / 64) : T(1.0 / 512);
    const V size = size_of(x), up = fma(size, lanes(C::kInvLn2), lanes(kSixteenths<T>));
    const V n = up - lanes(kSixteenths<T>);
    doubt = either(doubt, n * lanes(kDoubtful));
    stage = {up, minus_product(n, lanes(C::kLn2Low), minus_product(n, lanes(C::kLn2High), size))};
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V) {
    const auto& rows = kHalvedPowers<T>;
    const V whole = lanes(kSixteenths<T>), up = stage.up, r = stage.r, z = r * r;
    const V n = up - whole, minus_n = whole - up, down = minus_n + whole;
    const V p = times_power(of_interval(rows.powers, up), n);
    const V q = times_power(of_interval(rows.powers, down), minus_n);
    const V sum = p + q, lost = (p - sum) + q;
    const V lack = fma(p, of_interval(rows.lacks, up), lost);
    const V less = fma(q, of_interval(rows.lacks, down), lack);
    return sum + fma(p - q, short_odd(r, z), fma(sum, short_even(z), less));
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};

}  // namespace
}  // namespace cuop::jit
#endif
