// Functions by polynomials on intervals, whose coefficients one permutation fetches for a vector,
// and by tables: without the divisions that vectors of eight floats or four doubles are too few to
// hide.
#pragma once

#include "cuop/jit/cpu/lane_rows_isa.h"
#include "cuop/jit/cpu/lane_stages_isa.h"
#include "cuop/jit/cpu/lane_tails_isa.h"
#include "cuop/jit/cpu/lanes_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include <cmath>
#include <numbers>

#include "cuop/jit/cpu/interval_coefficients.h"

namespace cuop::jit {
namespace {

/// base + (erf(r) - base + slope (d - d^2 (r + ...))): the Taylor series, whose coefficients are
/// Hermite's polynomials in r. Monotone, and below 1.3 ulp, tried on millions.
template <>
struct LaneForm<fn::Erf, double> {
  static constexpr int kParts = 256, kRows = 8 * kParts, kFirstFromOne = 124;
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
  template <class Fetch>
  [[gnu::always_inline]] static DoubleLanes apply(DoubleLanes x, const Table& table) {
    constexpr double kFromOne = (kFirstFromOne - 0.5) / kParts;
    constexpr double kWhole =
        accurate::Format<double>::kWhole / kParts;  // its last bit is 1 / kParts
    const DoubleLanes size = at_most(size_of(x), 5.95);
    const DoubleLanes shifted = size + lanes(kWhole), r = shifted - lanes(kWhole), d = size - r;
    const Row<double> row = Fetch::template at<kRows>(table.rows, shifted);
    const DoubleLanes z = r * r;
    const DoubleLanes c2 = fma(z, lanes(2.0 / 3), lanes(-1.0 / 3));
    const DoubleLanes c3 = r * fma(z, lanes(-1.0 / 3), lanes(0.5));
    const DoubleLanes c4 = fma(z, fma(z, lanes(2.0 / 15), lanes(-0.4)), lanes(0.1));
    const DoubleLanes bend = fma(d, fma(d, fma(d, c4, c3), c2), -r);
    const DoubleLanes part = fma(row.slope, d, (row.slope * d) * (d * bend));
    const DoubleLanes base = size >= kFromOne ? lanes(1.0) : DoubleLanes{};
    return either(base + (row.value + part), sign_of(x));
  }
};

/// Of each lane the number of its interval, which the last bits of `shifted` name: of sixteen, or
/// of eight where a vector has eight floats.
[[gnu::always_inline]] inline Lanes of_interval(const float (&row)[kLanes<float>], Lanes shifted) {
#ifdef __AVX512F__
  return _mm512_maskz_permutexvar_ps(kAll, _mm512_castps_si512(shifted), load(row));
#else
  return _mm256_permutevar8x32_ps(load(row), _mm256_castps_si256(shifted));
#endif
}
#ifdef __AVX512F__
/// The same of 32.
[[gnu::always_inline]] inline Lanes of_interval(const float (&row)[2 * kLanes<float>],
                                                Lanes shifted) {
  return _mm512_permutex2var_ps(load(row), _mm512_castps_si512(shifted), load(row + kLanes<float>));
}
#endif
template <int First = 0, int Count, int Intervals>
[[gnu::always_inline]] inline Lanes horner(const float (&rows)[Count][Intervals], Lanes shifted,
                                           Lanes s) {
  const Lanes c = of_interval(rows[First], shifted);
  if constexpr (First + 1 == Count) {
    return c;
  } else {
    return fma(horner<First + 1>(rows, shifted, s), s, c);
  }
}

#ifndef __AVX512F__
/// base + (value + (s slope + s P(s))) with s up to 0.29. Below 1 ulp and monotone, tried on all
/// arguments.
template <>
struct LaneForm<fn::Erf, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    using C = ErfIntervals;
    constexpr float kWhole = accurate::Format<float>::kWhole;
    const Lanes a = at_most(size_of(x), 3.95f);
    const Lanes shifted = fma(a, lanes(C::kPerSpacing), lanes(kWhole));
    const Lanes s = fma(shifted - lanes(kWhole), lanes(-C::kSpacing), a);  // exact
    const Lanes rest = s * horner(C::kRest, shifted, s);
    const Lanes part = fma(s, of_interval(C::kSlope, shifted), rest);
    const Lanes y = of_interval(C::kBase, shifted) + (of_interval(C::kValue, shifted) + part);
    return either(y, sign_of(x));
  }
};

#endif

/// Those lanes again by the general form.
template <class F, class T>
[[gnu::noinline]] void apply_again(T* result, const T* x, int lanes) {
  for (int k = 0; lanes >> k != 0; ++k) {
    if ((lanes >> k & 1) != 0) result[k] = F::apply(x[k]);
  }
}

/// The same of a vector whose elements may have been written over.
template <class F, class T, class V>
[[gnu::always_inline]] inline void apply_vector_again(T* result, V given, int lanes) {
  T again[kLanes<T>];
  store<T>(again, given);
  apply_again<F>(result, again, lanes);
}

template <class F, class T>
[[gnu::noinline]] void apply_again(T* result, const T* x, const T* y, int lanes) {
  for (int k = 0; lanes >> k != 0; ++k) {
    if ((lanes >> k & 1) != 0) result[k] = F::apply(x[k], y[k]);
  }
}

/// Functions by a table, whose rows `apply` has fetched by its first argument.
template <class Form>
concept HasTable = requires {
  typename Form::Table;
};

/// A block whose length is a multiple of 16; each vector by `apply`.
template <class F, class Form, class T, class Apply>
[[gnu::always_inline]] inline void run_vectors(T* result, const T* x, int64_t n, Apply apply) {
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const auto given = load(x + i);
    fetch_ahead(result + i);
    store<T>(result + i, apply(given));
    if constexpr (requires { Form::unsure(given); }) {
      if (const int unsure = Form::unsure(given); unsure != 0) [[unlikely]] {
        apply_vector_again<F>(result + i, given, unsure);
      }
    }
  }
}
/// Forms whose `apply` says by `doubt`, as stages do, which lanes it does not cover.
template <class Form, class T>
concept HasDoubt = requires(LanesOf<T> x, LanesOf<T> doubt) {
  Form::apply(x, doubt);
};

/// Some vectors, asked together whether all of them are covered.
template <class F, int kCount, class T>
[[gnu::always_inline]] inline void run_together(T* result, const T* x) {
  using Form = LaneForm<F, T>;
  LanesOf<T> given[kCount], doubt{};
  for (int k = 0; k < kCount; ++k) {
    given[k] = load(x + k * kLanes<T>);
    fetch_ahead(result + k * kLanes<T>);
    store<T>(result + k * kLanes<T>, Form::apply(given[k], doubt));
  }
  if (unsure_lanes(doubt) == 0) [[likely]]
    return;
  for (int k = 0; k < kCount; ++k) {
    LanesOf<T> of_one{};
    (void)Form::apply(given[k], of_one);
    apply_vector_again<F>(result + k * kLanes<T>, given[k], unsure_lanes(of_one));
  }
}
/// A block whose length is a multiple of 16.
template <class F, class T>
[[gnu::always_inline]] inline void run_with_doubt(T* result, const T* x, int64_t n) {
  constexpr int kVectors = 4;  // more take no less time
  int64_t i = 0;
  for (; i + kVectors * kLanes<T> <= n; i += kVectors * kLanes<T>) {
    run_together<F, kVectors>(result + i, x + i);
  }
  for (; i < n; i += kLanes<T>) run_together<F, 1>(result + i, x + i);
}
/// As run_vectors, of two arguments, of which the result may be either.
template <class F, class T>
[[gnu::always_inline]] inline void run_pairs(T* result, const T* x, const T* y, int64_t n) {
  using Form = LaneForm<F, T>;
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const auto a = load(x + i), b = load(y + i);
    store<T>(result + i, Form::apply(a, b));
    if (const int unsure = Form::unsure(a, b); unsure != 0) [[unlikely]] {
      T again[2][kLanes<T>];
      store<T>(again[0], a);
      store<T>(again[1], b);
      apply_again<F>(result + i, again[0], again[1], unsure);
    }
  }
}
template <class F, class Form, class T>
[[gnu::always_inline]] inline void run_stages(T* result, const T* x, int64_t n) {
  constexpr int kMost = StagesOf<Form, T>::kMost;
  for (int64_t i = 0; i < n; i += kMost) {
    const int count = n - i < kMost ? static_cast<int>(n - i) : kMost;
    if (are_stages_sure<Form>(result + i, x + i, count)) continue;
    run_vectors<F, Form>(result + i, x + i, count,
                         [](auto given) { return apply_stages<Form>(given); });
  }
}
template <class Form>
const typename Form::Table& table_of() {
  static const typename Form::Table table;
  return table;
}
template <class F, class T, class Fetch>
void run_lane_form(T* result, const T* x, int64_t n) {
  using Form = LaneForm<F, T>;
  if constexpr (HasLaneStages<Form>) {
    run_stages<F, Form>(result, x, n);
  } else if constexpr (HasDoubt<Form, T>) {
    run_with_doubt<F>(result, x, n);
  } else if constexpr (HasTable<Form>) {
    const auto& table = table_of<Form>();
    run_vectors<F, Form>(result, x, n,
                         [&](auto given) { return Form::template apply<Fetch>(given, table); });
  } else {
    run_vectors<F, Form>(result, x, n, [](auto given) { return Form::apply(given); });
  }
}

}  // namespace
}  // namespace cuop::jit
#endif
