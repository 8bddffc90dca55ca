// Logarithms of vectors of AVX-512, whose permutations fetch from tables of 16 or 32 numbers and
// which take exponents and mantissas apart in one operation, also of subnormal numbers.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include "cuop/jit/cpu/log_tables.h"

namespace cuop::jit {
namespace {

[[gnu::always_inline]] inline Lanes exponent_of(Lanes x) { return _mm512_maskz_getexp_ps(kAll, x); }
[[gnu::always_inline]] inline DoubleLanes exponent_of(DoubleLanes x) {
  return _mm512_maskz_getexp_pd(static_cast<__mmask8>(kAll), x);
}
/// From 1 to 2, of |x|.
[[gnu::always_inline]] inline Lanes mantissa_of(Lanes x) {
  return _mm512_maskz_getmant_ps(kAll, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
}
[[gnu::always_inline]] inline DoubleLanes mantissa_of(DoubleLanes x) {
  return _mm512_maskz_getmant_pd(static_cast<__mmask8>(kAll), x, _MM_MANT_NORM_1_2,
                                 _MM_MANT_SIGN_zero);
}
/// Of each lane the number that the last bits of the row name, five or, of double, four.
[[gnu::always_inline]] inline Lanes of_row(const float (&table)[32], __m512i row) {
  return of_interval(table, _mm512_castsi512_ps(row));
}
[[gnu::always_inline]] inline DoubleLanes of_row(const double (&table)[16], __m512i row) {
  return _mm512_permutex2var_pd(load(table), row, load(table + 8));
}
/// x 2^n.
[[gnu::always_inline]] inline Lanes times_power(Lanes x, Lanes n) {
  return _mm512_maskz_scalef_ps(kAll, x, n);
}
[[gnu::always_inline]] inline DoubleLanes times_power(DoubleLanes x, DoubleLanes n) {
  return _mm512_maskz_scalef_pd(static_cast<__mmask8>(kAll), x, n);
}
/// The first digits behind the point of numbers from 1 to 2: for 32 rows, of double 16.
[[gnu::always_inline]] inline __m512i row_of(Lanes m) {
  return _mm512_maskz_srli_epi32(kAll, _mm512_castps_si512(m), 18);
}
[[gnu::always_inline]] inline __m512i row_of(DoubleLanes m) {
  return _mm512_maskz_srli_epi64(static_cast<__mmask8>(kAll), _mm512_castpd_si512(m), 48);
}
/// y, or what the logarithm of x is where that is 0, negative, infinite or NaN.
constexpr int kLogResults = 0x03530422;  // of NaN, NaN, 0, 1, -inf, inf, x < 0, x > 0
[[gnu::always_inline]] inline Lanes log_result(Lanes x, Lanes y) {
  return _mm512_fixupimm_ps(y, x, _mm512_set1_epi32(kLogResults), 0);
}
[[gnu::always_inline]] inline DoubleLanes log_result(DoubleLanes x, DoubleLanes y) {
  return _mm512_fixupimm_pd(y, x, _mm512_set1_epi64(kLogResults), 0);
}

/// What e log(2) + T lacks: where c is 1/2, T is log(2), and without it nothing is lacking.
template <class Rows>
[[gnu::always_inline]] inline Lanes lack_of_two(Lanes e, Lanes c) {
  const __mmask16 is_half = _mm512_cmp_ps_mask(c, lanes(0.5f), _CMP_EQ_OQ);
  return fma(e, lanes(Rows::kOfTwoRest), _mm512_maskz_mov_ps(is_half, lanes(Rows::kOfTwoRest)));
}
template <class Rows>
[[gnu::always_inline]] inline DoubleLanes lack_of_two(DoubleLanes e, DoubleLanes c) {
  const __mmask8 is_half = _mm512_cmp_pd_mask(c, lanes(0.5), _CMP_EQ_OQ);
  return fma(e, lanes(Rows::kOfTwoRest), _mm512_maskz_mov_pd(is_half, lanes(Rows::kOfTwoRest)));
}

/// P(r).
template <class Rows, class V>
[[gnu::always_inline]] inline V log_rest(V r, V square) {
  return fma(horner<1, 2>(Rows::kRest, square), r, horner<0, 2>(Rows::kRest, square));
}
/// x = 2^e m, and of m's row the factor and the logarithm of its inverse.
template <class Rows, class V>
struct LogParts {
  using T = NumberOf<V>;
  V e, m, c, log;

  [[gnu::always_inline]] explicit LogParts(V x) : e(exponent_of(x)), m(mantissa_of(x)) {
    const __m512i row = row_of(m);
    c = of_row(Rows::kFactors, row);
    log = of_row(Rows::kLogs, row);
  }
  [[gnu::always_inline]] V lack() const { return lack_of_two<Rows>(e, c); }
  [[gnu::always_inline]] V residue() const { return fma(m, c, lanes(T(-1))); }
  /// e log(2) + T + (r slope + low).
  [[gnu::always_inline]] V sum_with(V r, V low) const {
    const V high = fma(e, lanes(Rows::kOfTwo), log);
    if constexpr (Rows::kSlope == 1) {
      const V sum = high + r, lost = r - (sum - high);
      return sum + (lost + low);
    } else {
      low = fma(r, lanes(Rows::kSlopeRest), low);
      return high + fma(r, lanes(Rows::kSlope), low);
    }
  }
  /// The logarithm of 2^e (1 + r) / c, which is e log(2) + T + (r slope + r^2 P(r)) and what that
  /// lacks.
  [[gnu::always_inline]] V log_with(V r, V lack) const {
    const V square = r * r;
    return sum_with(r, fma(log_rest<Rows>(r, square), square, lack));
  }
  [[gnu::always_inline]] V log_with(V r) const {
    if constexpr (Rows::kOfTwoRest == 0) {
      const V square = r * r;
      return sum_with(r, log_rest<Rows>(r, square) * square);
    } else {
      return log_with(r, lack());
    }
  }
};
template <class Rows>
[[gnu::always_inline]] inline DoubleLanes table_log(DoubleLanes x) {
  const LogParts<Rows, DoubleLanes> parts(x);
  return log_result(x, parts.log_with(parts.residue()));
}
/// A logarithm of float by x = 2^e m: steps of one size, of which e and the row name a number that
/// is exact, and of h = m c unit - unit, about as large as the rest, h + h P(h).
template <class Rows>
[[gnu::always_inline]] inline Lanes log_in_steps(Lanes x) {
  const Lanes m = mantissa_of(x);
  const __m512i row = row_of(m);
  const Lanes h = fma(m, of_row(Rows::kFactors, row), lanes(-Rows::kUnit));
  const Lanes steps = fma(exponent_of(x), lanes(Rows::kTwo), of_row(Rows::kLogs, row));
  const Lanes rest = fma(h, horner<0, 1>(Rows::kTerms, h), h);
  return log_result(x, fma(steps, lanes(Rows::kOfStep), rest));
}
/// (e + T) log10(2) + (r slope + r^2 P(r)) by the rows of log2, whose e + T is exact.
[[gnu::always_inline]] inline DoubleLanes table_log10(DoubleLanes x) {
  using Rows = Log10Rows<double>;
  const LogParts<Log2Rows<double>, DoubleLanes> parts(x);
  const DoubleLanes r = parts.residue(), square = r * r, twos = parts.e + parts.log;
  DoubleLanes low = fma(log_rest<Rows>(r, square), square, twos * lanes(Rows::kOfTwoRest));
  low = fma(r, lanes(Rows::kSlope), fma(r, lanes(Rows::kSlopeRest), low));
  return log_result(x, fma(twos, lanes(Rows::kOfTwo), low));
}
/// Of float below 0.85, 0.93 (log2) and 0.85 ulp (log10) and monotone, tried on all arguments; of
/// double below 0.8 and 1, tried on millions.
template <>
struct LaneForm<fn::Log, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) { return log_in_steps<LogSteps>(x); }
};
template <>
struct LaneForm<fn::Log2, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) { return log_in_steps<Log2Steps>(x); }
};
template <>
struct LaneForm<fn::Log10, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) { return log_in_steps<Log10Steps>(x); }
};
template <>
struct LaneForm<fn::Log, double> {
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x) {
    return table_log<LogRows<double>>(x);
  }
};
template <>
struct LaneForm<fn::Log2, double> {
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x) {
    return table_log<Log2Rows<double>>(x);
  }
};
template <>
struct LaneForm<fn::Log10, double> {
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x) { return table_log10(x); }
};

}  // namespace
}  // namespace cuop::jit
#endif
