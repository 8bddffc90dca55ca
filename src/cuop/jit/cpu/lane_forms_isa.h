// Functions of float where vectors have eight of them, which is too few to hide what a division
// costs: polynomials on eight intervals instead, whose coefficients one permutation fetches for a
// vector. Everything has internal linkage: each *_isa.cpp gets its own.
#pragma once

#include "cuop/jit/kernels/op_list.h"

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
#define CUOP_HAS_LANE_FORMS
#include <immintrin.h>

#include <cmath>
#include <numbers>

#include "cuop/jit/cpu/interval_coefficients.h"
#endif

namespace cuop::jit {
namespace {

/// The form of F for a whole vector, which covers all arguments; most functions have none.
template <class F, class T>
struct LaneForm;

#ifdef CUOP_HAS_LANE_FORMS

using Lanes = __m256;
using LaneBits = __m256i;

[[gnu::always_inline]] inline Lanes lanes(float x) { return _mm256_set1_ps(x); }
[[gnu::always_inline]] inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Lanes size_of(Lanes x) { return _mm256_andnot_ps(lanes(-0.0f), x); }
[[gnu::always_inline]] inline Lanes sign_of(Lanes x) { return _mm256_and_ps(lanes(-0.0f), x); }
/// The smaller one; NaN of a NaN.
[[gnu::always_inline]] inline Lanes at_most(Lanes size, float most) {
  return _mm256_min_ps(lanes(most), size);
}
/// Of each lane the number of its interval, which is in the last three bits.
[[gnu::always_inline]] inline Lanes of_interval(const float (&row)[8], LaneBits interval) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(row), interval);
}
template <int First = 0, int Count>
[[gnu::always_inline]] inline Lanes horner(const float (&rows)[Count][8], LaneBits interval,
                                           Lanes s) {
  const Lanes c = of_interval(rows[First], interval);
  if constexpr (First + 1 == Count) {
    return c;
  } else {
    return fma(horner<First + 1>(rows, interval, s), s, c);
  }
}
/// base + (value + (s slope + s P(s))) with s up to 0.29. Below 1 ulp and monotone, tried on all
/// arguments.
template <>
struct LaneForm<fn::Erf, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    using C = ErfIntervals;
    constexpr float kWhole = accurate::Format<float>::kWhole;
    const Lanes a = at_most(size_of(x), 3.95f);
    const Lanes shifted = fma(a, lanes(C::kPerSpacing), lanes(kWhole));
    const LaneBits interval = _mm256_castps_si256(shifted);
    const Lanes s = fma(shifted - lanes(kWhole), lanes(-C::kSpacing), a);  // exact
    const Lanes rest = s * horner(C::kRest, interval, s);
    const Lanes part = fma(s, of_interval(C::kSlope, interval), rest);
    const Lanes y = of_interval(C::kBase, interval) + (of_interval(C::kValue, interval) + part);
    return _mm256_or_ps(y, sign_of(x));
  }
};

using DoubleLanes = __m256d;
[[gnu::always_inline]] inline DoubleLanes lanes(double x) { return _mm256_set1_pd(x); }
[[gnu::always_inline]] inline DoubleLanes fma(DoubleLanes a, DoubleLanes b, DoubleLanes c) {
  return _mm256_fmadd_pd(a, b, c);
}

/// Every Stride-th term, of that power of x.
template <int First, int Stride, int Count>
[[gnu::always_inline]] inline DoubleLanes horner(const double (&coefficients)[Count],
                                                 DoubleLanes power) {
  if constexpr (First + Stride >= Count) {
    return lanes(coefficients[First]);
  } else {
    return fma(horner<First + Stride, Stride>(coefficients, power), power,
               lanes(coefficients[First]));
  }
}

/// A row's two numbers for each lane, from four loads of both.
struct Row {
  DoubleLanes value, slope;
};
[[gnu::always_inline]] inline Row rows_at(const double (*rows)[2], LaneBits index) {
  const auto row = [&](int64_t i) { return _mm_loadu_pd(rows[static_cast<uint32_t>(i)]); };
  const auto both = [](__m128d a, __m128d b) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(a), b, 1);
  };
  const DoubleLanes even =
      both(row(_mm256_extract_epi64(index, 0)), row(_mm256_extract_epi64(index, 2)));
  const DoubleLanes odd =
      both(row(_mm256_extract_epi64(index, 1)), row(_mm256_extract_epi64(index, 3)));
  return {_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)};
}

/// |x| = r + d, r a multiple of 1 / Parts, and the row of r; of what is beyond `most`, and of NaN,
/// those of `most`.
struct Place {
  DoubleLanes r, d;
  Row row;
};
template <int Parts>
[[gnu::always_inline]] inline Place place_of(DoubleLanes size, double most,
                                             const double (*rows)[2]) {
  constexpr double kWhole = accurate::Format<double>::kWhole / Parts;  // its last bit is 1 / Parts
  const DoubleLanes a = _mm256_min_pd(size, lanes(most));              // also where x is NaN
  const DoubleLanes shifted = a + lanes(kWhole), r = shifted - lanes(kWhole);
  return {r, a - r, rows_at(rows, _mm256_castpd_si256(shifted))};
}

/// base + (erf(r) - base + slope (d - d^2 (r + ...))): the Taylor series, whose coefficients are
/// Hermite's polynomials in r. Monotone, and below 1.3 ulp, tried on millions.
template <>
struct LaneForm<fn::Erf, double> {
  static constexpr int kParts = 256, kRows = 6 * kParts, kFirstFromOne = 124;
  struct Table {
    double rows[kRows][2];
    Table() {
      const long double slope = 2 / std::sqrt(std::numbers::pi_v<long double>);
      for (int i = 0; i < kRows; ++i) {
        const long double r = static_cast<long double>(i) / kParts;
        rows[i][0] = static_cast<double>(i < kFirstFromOne ? std::erf(r) : -std::erfc(r));
        rows[i][1] = static_cast<double>(slope * std::exp(-r * r));
      }
    }
  };
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x, const Table& table) {
    constexpr double kMost = 5.95, kFromOne = (kFirstFromOne - 0.5) / kParts;
    const DoubleLanes size = _mm256_andnot_pd(lanes(-0.0), x);
    const auto [r, d, row] = place_of<kParts>(size, kMost, table.rows);
    const DoubleLanes z = r * r;
    const DoubleLanes c2 = fma(z, lanes(2.0 / 3), lanes(-1.0 / 3));
    const DoubleLanes c3 = r * fma(z, lanes(-1.0 / 3), lanes(0.5));
    const DoubleLanes c4 = fma(z, fma(z, lanes(2.0 / 15), lanes(-0.4)), lanes(0.1));
    const DoubleLanes bend = fma(d, fma(d, fma(d, c4, c3), c2), -r);
    const DoubleLanes part = fma(row.slope, d, (row.slope * d) * (d * bend));
    const DoubleLanes base =
        _mm256_and_pd(_mm256_cmp_pd(size, lanes(kFromOne), _CMP_GE_OQ), lanes(1.0));
    const DoubleLanes y = base + (row.value + part);
    const DoubleLanes is_nan = _mm256_cmp_pd(x, x, _CMP_UNORD_Q);
    return _mm256_or_pd(_mm256_or_pd(y, is_nan), _mm256_and_pd(lanes(-0.0), x));
  }
};

/// x P(X <= x) by the tail t(a) = 2 P(X > a), a = |x|, which is t(r) (1 + change) with 1 + change =
/// e^-y (1 + g(d)), y = d (r + d / 2): g is the Taylor series of f(a) = e^(a^2 / 2) t(a), of which
/// f'(r) / f(r) is in the row and the others follow from f'' = a f' + f. Below 1.5 ulp, tried on
/// millions.
template <>
struct LaneForm<fn::Gelu, double> {
  static constexpr int kParts = 256, kRows = 12 * kParts + 1;
  static constexpr double kMost = 12;
  struct Table {
    double rows[kRows][2];
    Table() {
      const long double half = 0.5L, slope = std::sqrt(2 / std::numbers::pi_v<long double>);
      for (int i = 0; i < kRows; ++i) {
        const long double r = static_cast<long double>(i) / kParts;
        const long double tail = std::erfc(r * std::sqrt(half));
        rows[i][0] = static_cast<double>(tail);
        rows[i][1] = static_cast<double>(r - slope * std::exp(-half * r * r) / tail);
      }
    }
  };
  /// The lanes of arguments that are not covered.
  [[gnu::always_inline]] static int unsure(DoubleLanes x) {
    return _mm256_movemask_pd(_mm256_cmp_pd(x, lanes(-kMost), _CMP_LT_OQ));
  }
  [[gnu::always_inline]] static DoubleLanes change(DoubleLanes r, DoubleLanes d, DoubleLanes g1) {
    using C = ShortPower;
    const DoubleLanes y = -d * fma(lanes(0.5), d, r), square = y * y;
    const DoubleLanes odd = horner<1, 2>(C::kExp, square);
    const DoubleLanes e = fma(square, fma(odd, y, horner<0, 2>(C::kExp, square)), y);
    const DoubleLanes g2 = fma(r, g1, lanes(1.0)) * lanes(1.0 / 2);
    const DoubleLanes g3 = fma(r, g2, g1) * lanes(1.0 / 3);
    const DoubleLanes g4 = fma(r, g3, g2) * lanes(1.0 / 4);
    const DoubleLanes g5 = fma(r, g4, g3) * lanes(1.0 / 5);
    const DoubleLanes g = d * fma(fma(fma(fma(g5, d, g4), d, g3), d, g2), d, g1);
    return fma(e, g, e + g);
  }
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x, const Table& table) {
    const DoubleLanes sign = _mm256_and_pd(lanes(-0.0), x), size = _mm256_xor_pd(sign, x);
    const auto [r, d, row] = place_of<kParts>(size, kMost, table.rows);
    const DoubleLanes half = lanes(0.5) * (r + d), product = half * row.value;
    const DoubleLanes low = _mm256_fmsub_pd(half, row.value, product);
    const DoubleLanes tail = product + fma(product, change(r, d, row.slope), low);
    const DoubleLanes y = _mm256_max_pd(lanes(0.0), x) - tail;
    return _mm256_or_pd(_mm256_andnot_pd(lanes(-0.0), y), sign);
  }
};

[[gnu::always_inline]] inline Lanes load(const float* x) { return _mm256_loadu_ps(x); }
[[gnu::always_inline]] inline DoubleLanes load(const double* x) { return _mm256_loadu_pd(x); }
[[gnu::always_inline]] inline void store(float* to, Lanes x) { _mm256_storeu_ps(to, x); }
[[gnu::always_inline]] inline void store(double* to, DoubleLanes x) { _mm256_storeu_pd(to, x); }

/// Those lanes again by the general form.
template <class F, class T>
[[gnu::noinline]] void apply_again(T* result, const T* x, int lanes) {
  for (int k = 0; lanes >> k != 0; ++k) {
    if ((lanes >> k & 1) != 0) result[k] = F::apply(x[k]);
  }
}

/// A block whose length is a multiple of 16; each vector by `apply`.
template <class F, class T, class Apply>
[[gnu::always_inline]] inline void run_vectors(T* result, const T* x, int64_t n, Apply apply) {
  using Form = LaneForm<F, T>;
  constexpr int64_t kLanes = 32 / sizeof(T);
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto given = load(x + i);
    store(result + i, apply(given));
    if constexpr (requires { Form::unsure(given); }) {
      if (const int unsure = Form::unsure(given); unsure != 0) [[unlikely]] {
        T again[kLanes];
        store(again, given);
        apply_again<F>(result + i, again, unsure);
      }
    }
  }
}
template <class F, class T>
void run_lane_form(T* result, const T* x, int64_t n) {
  using Form = LaneForm<F, T>;
  if constexpr (requires { typename Form::Table; }) {
    static const typename Form::Table table;
    run_vectors<F>(result, x, n, [](auto given) { return Form::apply(given, table); });
  } else {
    run_vectors<F>(result, x, n, [](auto given) { return Form::apply(given); });
  }
}

#endif

}  // namespace
}  // namespace cuop::jit
