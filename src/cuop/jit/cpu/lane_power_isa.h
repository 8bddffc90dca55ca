// pow of float for vectors of AVX-512, by logarithm and power of two in double: the exponent of the
// result needs 34 digits, more than two floats carry easily.
#pragma once

#include "cuop/jit/cpu/lane_coefficients.h"
#include "cuop/jit/cpu/lane_exponential_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
namespace cuop::jit {
namespace {

/// |x|^y within 2^-28, for positive finite |x| and finite y.
[[gnu::always_inline]] inline DoubleLanes power_of_size(DoubleLanes size, DoubleLanes y) {
  const LogParts<Log2Rows<double>, DoubleLanes> parts(size);
  const DoubleLanes t = parts.residue();
  const DoubleLanes log = fma(t, horner<0, 1>(PowerSeries::kLog2, t), parts.e + parts.log);
  // Beyond, the result is 0 or infinite all the same.
  const DoubleLanes z = within_powers(y * log, -1100.0, 1100.0);
  const DoubleLanes shifted = z + lanes(kSixteenths<double>),
                    n = shifted - lanes(kSixteenths<double>);
  const DoubleLanes r = z - n, power = of_interval(PowerRows<double>::kPowers, shifted);
  return times_power(fma(power, r * horner<0, 1>(PowerSeries::kExp2, r), power), n);
}

/// A half of the vector, widened.
template <int Half>
[[gnu::always_inline]] inline DoubleLanes widened(Lanes x) {
  constexpr auto kAllDoubles = static_cast<__mmask8>(kAll);
  const __m256d half = _mm512_maskz_extractf64x4_pd(kAllDoubles, _mm512_castps_pd(x), Half);
  return _mm512_maskz_cvtps_pd(kAllDoubles, _mm256_castpd_ps(half));
}
[[gnu::always_inline]] inline Lanes narrowed(DoubleLanes low, DoubleLanes high) {
  const auto half = [](DoubleLanes x) {
    return _mm256_castps_pd(_mm512_maskz_cvtpd_ps(static_cast<__mmask8>(kAll), x));
  };
  const __m512d first = _mm512_castpd256_pd512(half(low));
  const auto all = static_cast<__mmask8>(kAll);
  return _mm512_castpd_ps(_mm512_maskz_insertf64x4(all, first, half(high), 1));
}

/// Below 0.53 ulp, tried on millions of every size and on those of some exponents.
template <>
struct LaneForm<fn::Power, float> {
  /// Zeros, infinities and NaN have rules of their own.
  [[gnu::always_inline]] static int unsure(Lanes x, Lanes y) {
    constexpr int kNan = 0x81, kZero = 0x06, kInfinite = 0x18;
    return _mm512_fpclass_ps_mask(x, kNan | kZero | kInfinite) |
           _mm512_fpclass_ps_mask(y, kNan | kInfinite);
  }
  [[gnu::always_inline]] static Lanes apply(Lanes x, Lanes y) {
    const Lanes size = size_of(x);
    const DoubleLanes low = power_of_size(widened<0>(size), widened<0>(y));
    const DoubleLanes high = power_of_size(widened<1>(size), widened<1>(y));
    return with_sign(narrowed(low, high), x, y);
  }

 private:
  /// Those of the chosen lanes whose number is not whole.
  [[gnu::always_inline]] static __mmask16 not_whole(__mmask16 chosen, Lanes x) {
    const Lanes cut = _mm512_maskz_roundscale_ps(kAll, x, _MM_FROUND_TO_ZERO);
    return _mm512_mask_cmp_ps_mask(chosen, x, cut, _CMP_NEQ_UQ);
  }
  /// Of a negative x: NaN unless y is a whole number, of whose parity the sign is.
  [[gnu::always_inline]] static Lanes with_sign(Lanes power, Lanes x, Lanes y) {
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    const __mmask16 broken = not_whole(negative, y);
    const __mmask16 odd = not_whole(negative, y * lanes(0.5f));
    const Lanes signed_power = _mm512_mask_xor_ps(power, odd, power, lanes(-0.0f));
    return _mm512_mask_blend_ps(broken, signed_power, lanes(__builtin_nanf("")));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
