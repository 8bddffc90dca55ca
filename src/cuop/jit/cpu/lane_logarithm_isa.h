// Logarithms of vectors of AVX-512, whose permutations fetch from tables of 32 floats or 16 doubles
// and which take exponents and mantissas apart in one operation, also of subnormal numbers.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include <concepts>

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
/// Of each lane the number that the last five bits of the row name, of double the last four.
[[gnu::always_inline]] inline Lanes of_row(const float (&table)[32], __m512i row) {
  return _mm512_permutex2var_ps(load(table), row, load(table + 16));
}
[[gnu::always_inline]] inline DoubleLanes of_row(const double (&table)[16], __m512i row) {
  return _mm512_permutex2var_pd(load(table), row, load(table + 8));
}
/// The first digits behind the point of numbers from 1 to 2.
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

/// What log(2) lacks where c is 1/2: there e log(2) + log(2) is nothing.
template <class Rows, class T>
struct RestOfTwo {
  T rows[128 / sizeof(T)] = {};
  constexpr RestOfTwo() {
    for (int i = 128 / sizeof(T) - 1; Rows::kFactors[i] == T(0.5); --i) rows[i] = Rows::kOfTwoRest;
  }
};

/// e log(2) + T + (r slope + r^2 P(r)).
template <class Rows, class V>
[[gnu::always_inline]] inline V table_log(V x) {
  using T = NumberOf<V>;
  const V m = mantissa_of(x), e = exponent_of(x);
  const __m512i row = row_of(m);
  const V r = fma(m, of_row(Rows::kFactors, row), lanes(T(-1))), square = r * r;
  const V high = fma(e, lanes(Rows::kOfTwo), of_row(Rows::kLogs, row));
  V p;
  if constexpr (sizeof(T) == 4) {
    p = horner<0, 1>(Rows::kRest, r);
  } else {
    p = fma(horner<1, 2>(Rows::kRest, square), r, horner<0, 2>(Rows::kRest, square));
  }
  V low;
  if constexpr (Rows::kOfTwoRest == 0) {
    low = p * square;
  } else {
    static constexpr RestOfTwo<Rows, T> kRests;
    low = fma(p, square, fma(e, lanes(Rows::kOfTwoRest), of_row(kRests.rows, row)));
  }
  if constexpr (sizeof(T) == 8 && Rows::kSlopeRest != 0) low = fma(r, lanes(Rows::kSlopeRest), low);
  if constexpr (Rows::kSlope == 1 && sizeof(T) == 8) {
    const V sum = high + r, lost = r - (sum - high);
    return log_result(x, sum + (lost + low));
  } else if constexpr (Rows::kSlope == 1) {
    return log_result(x, high + (r + low));
  } else {
    return log_result(x, high + fma(r, lanes(Rows::kSlope), low));
  }
}

/// Of float below 0.77 ulp, log2 0.87 and log10 0.95, tried on all arguments; of double below 0.8
/// and 1, tried on millions.
template <std::floating_point T>
struct LaneForm<fn::Log, T> {
  [[gnu::always_inline]] static LanesOf<T> apply(LanesOf<T> x) { return table_log<LogRows<T>>(x); }
};
template <std::floating_point T>
struct LaneForm<fn::Log2, T> {
  [[gnu::always_inline]] static LanesOf<T> apply(LanesOf<T> x) { return table_log<Log2Rows<T>>(x); }
};
template <std::floating_point T>
struct LaneForm<fn::Log10, T> {
  [[gnu::always_inline]] static LanesOf<T> apply(LanesOf<T> x) {
    return table_log<Log10Rows<T>>(x);
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
