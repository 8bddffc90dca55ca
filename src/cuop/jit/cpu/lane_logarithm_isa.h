// Logarithms of vectors of AVX-512, whose permutations fetch from tables of 32
// floats or 16 doubles and which take exponents and mantissas apart in one
// operation, also of subnormal numbers.
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
/// Of each lane the number that the last five bits of the row name, of double
/// the last four.
[[gnu::always_inline]] inline Lanes of_row(const float (&table)[32], __m512i row) {
  return _mm512_permutex2var_ps(load(table), row, load(table + 16));
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
[[gnu::always_inline]] inline DoubleLanes root_of(DoubleLanes x) {
  return _mm512_maskz_sqrt_pd(static_cast<__mmask8>(kAll), x);
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

/// What e log(2) + T lacks: where c is 1/2, T is log(2), and without it nothing is lacking.
template <class Rows>
[[gnu::always_inline]] inline Lanes lack_of_two(Lanes e, Lanes c) {
  const __mmask16 is_half = _mm512_cmp_ps_mask(c, lanes(0.5f), _CMP_EQ_OQ);
  return lanes(Rows::kOfTwoRest) * _mm512_mask_add_ps(e, is_half, e, lanes(1.0f));
}
template <class Rows>
[[gnu::always_inline]] inline DoubleLanes lack_of_two(DoubleLanes e, DoubleLanes c) {
  const __mmask8 is_half = _mm512_cmp_pd_mask(c, lanes(0.5), _CMP_EQ_OQ);
  return lanes(Rows::kOfTwoRest) * _mm512_mask_add_pd(e, is_half, e, lanes(1.0));
}

/// e log(2) + T + (r slope + r^2 P(r)).
template <class Rows, class V>
[[gnu::always_inline]] inline V table_log(V x) {
  using T = NumberOf<V>;
  const V m = mantissa_of(x), e = exponent_of(x);
  const __m512i row = row_of(m);
  const V c = of_row(Rows::kFactors, row), r = fma(m, c, lanes(T(-1))), square = r * r;
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
    low = fma(p, square, lack_of_two<Rows>(e, c));
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

/// log(u + low): next to 1 that of 1 + r + r_low, where r_low may be nearly as
/// large as r.
template <class V>
[[gnu::always_inline]] inline V log_of_sum(V u, V low) {
  using T = NumberOf<V>;
  using Rows = LogRows<T>;
  const V e = exponent_of(u), m = mantissa_of(u);
  const __m512i row = row_of(m);
  const V c = of_row(Rows::kFactors, row), r = fma(m, c, lanes(T(-1.0))), square = r * r;
  const V r_low = low * times_power(c, lanes(T(-0.0)) - e);
  const V high = fma(e, lanes(Rows::kOfTwo), of_row(Rows::kLogs, row));
  const V rest = lack_of_two<Rows>(e, c);
  const V even = horner<0, 2>(Rows::kRest, square);
  const V p = fma(horner<1, 2>(Rows::kRest, square), r, even);
  const V sum = high + r, lost = r - (sum - high);
  const V bend = fma(r_low, lanes(T(0.5)), r);
  const V share = minus_product(bend, r_low, r_low);  // of r_low
  return log_result(u, sum + (lost + (share + fma(p, square, rest))));
}
/// 1 / x nearly: exactly of 1, an eighth too much at most.
template <class V>
[[gnu::always_inline]] inline V rough_inverse(V x) {
  constexpr auto kTwice = 2 * std::bit_cast<accurate::BitsOf<NumberOf<V>>>(NumberOf<V>(1));
  return (V)(kTwice - (BitsOfLanes<V>)x);
}
/// Of arguments whose squares may not be finite.
template <class V>
[[gnu::always_inline]] inline V doubt_of_area(V x) {
  using T = NumberOf<V>;
  return x * lanes(sizeof(T) == 4 ? T(0x1p-59) : T(0x1p-499));
}
/// What the root of h + h_low lacks.
template <class V>
[[gnu::always_inline]] inline V rest_of_root(V h, V h_low, V root) {
  using T = NumberOf<V>;
  const V rest = minus_product(root, root, h) + h_low;
  return (lanes(T(0.5)) * rest) * rough_inverse(root);
}

/// What u = 1 + v lost, of which either may be the larger one.
template <class V>
[[gnu::always_inline]] inline V lost_of_one_and(V v, V u) {
  using T = NumberOf<V>;
  const V one = lanes(T(1.0)), part = u - one;
  return (one - (u - part)) + (v - part);
}

/// Below 0.8 ulp, as the functions that follow: of float tried on an eighth of all arguments, of
/// double on millions.
template <std::floating_point T>
struct LaneForm<fn::Log1p, T> {
  using V = LanesOf<T>;
  [[gnu::always_inline]] static V apply(V x) {
    const V u = lanes(T(1.0)) + x;
    return either(size_of(log_of_sum(u, lost_of_one_and(x, u))), sign_of(x));
  }
};
/// Of |x| + sqrt(x^2 + 1).
template <std::floating_point T>
struct LaneForm<fn::Asinh, T> {
  using V = LanesOf<T>;
  static constexpr int kApart = 6;
  struct Stage {
    V root, h_low, h;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    const V h = fma(x, x, lanes(T(1.0)));
    doubt = either(doubt, doubt_of_area(x));
    stage = {root_of(h), fma(x, x, lanes(T(1.0)) - h), h};
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V size = size_of(x), root = stage.root, u = root + size;
    // Exact: the root is the larger one.
    const V low = (size - (u - root)) + rest_of_root(stage.h, stage.h_low, root);
    return either(size_of(log_of_sum(u, low)), sign_of(x));
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
/// Of x + sqrt(x^2 - 1), from x - 1, which is exact.
template <std::floating_point T>
struct LaneForm<fn::Acosh, T> {
  using V = LanesOf<T>;
  static constexpr int kApart = 6;
  struct Stage {
    V root, h_low, h;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V& doubt) {
    const V t = x - lanes(T(1.0)), twice = t + t, h = fma(t, t, twice);
    doubt = either(doubt, doubt_of_area(x));
    // NaN below 1.
    stage = {root_of(either(h, sign_of(t))), fma(t, t, twice - h), h};
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V root = stage.root, u = x + root;
    const V low = (root - (u - x)) + rest_of_root(stage.h, stage.h_low, root);
    return log_of_sum(u, low);
  }
  [[gnu::always_inline]] static int unsure(V x) { return unsure_of<LaneForm>(x); }
};
/// Half the logarithm of (1 + |x|) / (1 - |x|) = 1 + v.
template <>
struct LaneForm<fn::Atanh, double> {
  using T = double;
  using V = DoubleLanes;
  static constexpr int kApart = 6;
  struct Stage {
    V inverse;
  };
  [[gnu::always_inline]] static void first(V x, Stage& stage, V&) {
    stage.inverse = lanes(T(1.0)) / (lanes(T(1.0)) - size_of(x));
  }
  [[gnu::always_inline]] static V last(const Stage& stage, V x) {
    const V one = lanes(T(1.0)), a = size_of(x), d = one - a, d_low = (one - d) - a;
    const V n = a + a, v = n * stage.inverse;
    const V rest = minus_product(v, d_low, minus_product(v, d, n));
    const V u = one + v;
    const V y = log_of_sum(u, fma(rest, stage.inverse, lost_of_one_and(v, u)));
    return either(size_of(lanes(T(0.5)) * y), sign_of(x));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
