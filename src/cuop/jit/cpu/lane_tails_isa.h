// erfc and gelu of whole vectors, by the tail t, which is erfc(a) or 2 P(X > a) of a standard
// normal X: a table has t at all multiples r of 1/256, and a series in d = a - r what t changes by
// up to a.
#pragma once

#include "cuop/jit/cpu/lane_rows_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <numbers>

#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {
namespace {

/// What t'(a) is in proportion to: e^(-kScale a^2). d is rounded to multiples of the last place of
/// kFew, if it is not 0, which makes neighbours either equal or further apart than errors.
struct ErfcTail {
  static constexpr double kScale = 1, kFew = 0.1875;
  static long double of(long double a) { return std::erfc(a); }
};
struct NormalTail {
  static constexpr double kScale = 0.5, kFew = 0;
  static long double of(long double a) { return std::erfc(a * std::sqrt(0.5L)); }
};

/// Of each r = i / kParts the nearest number to t(r), and t'(r) / t(r), whose last three bits are
/// 4 + what the nearest number lacks, in units of kUnit of itself.
template <class Kind, class T>
struct TailTable {
  static constexpr int kParts = 256, kRows = 16 * kParts;
  static constexpr T kUnit = std::numeric_limits<T>::epsilon() / 8;
  T rows[kRows][2] = {};

  /// The row of t(r) * factor.
  void set_row(int i, long double factor = 1) {
    const long double r = static_cast<long double>(i) / kParts, scale = Kind::kScale;
    const long double area = std::sqrt(std::numbers::pi_v<long double> / (4 * scale));
    const long double tail = Kind::of(r), value = factor * tail;
    const long double slope = -std::exp(-scale * r * r) / (area * tail);
    const T nearest = static_cast<T>(value);
    const auto lack = std::lround(static_cast<double>((value / nearest - 1) / kUnit));
    rows[i][0] = nearest;
    rows[i][1] = with_last_bits(slope, static_cast<int>(std::clamp(4 + lack, 0L, 7L)));
  }
  /// The nearest number with those last three bits.
  static T with_last_bits(long double x, int last) {
    using Bits = typename accurate::Format<T>::Bits;
    const Bits bits = (std::bit_cast<Bits>(static_cast<T>(x)) & ~Bits(7)) | static_cast<Bits>(last);
    T nearest = std::bit_cast<T>(bits);
    for (const Bits other : {bits - 8, bits + 8}) {
      const T y = std::bit_cast<T>(other);
      if (std::abs(y - x) < std::abs(nearest - x)) nearest = y;
    }
    return nearest;
  }
};

/// The integral of e^(-s (2 w u + q u^2)) over u from 0 to 1, for |s w| < 0.024 and s q < 2^-18 and
/// s a power of two.
template <class Kind>
[[gnu::always_inline]] inline Lanes mean_slope(Lanes w, Lanes q) {
  constexpr float s = Kind::kScale;
  const Lanes first = fma(w, fma(w, lanes(-s * s * s / 3), lanes(2 * s * s / 3)), lanes(-s));
  return fma(w, first, fma(q, lanes(-s / 3), lanes(1.0f)));
}
template <class Kind>
[[gnu::always_inline]] inline DoubleLanes mean_slope(DoubleLanes w, DoubleLanes q) {
  // Of w^k, with c = (-2 s)^k / k!: c / (k + 1); of -q w^k: s c / (k + 3); of q^2 w^k:
  // s^2 c / (2 (k + 5)).
  constexpr double s = Kind::kScale, s2 = s * s, s3 = s2 * s, s4 = s3 * s, s5 = s4 * s;
  static constexpr double kOne[] = {1,
                                    -s,
                                    s2 * (2.0 / 3),
                                    s3 * (-1.0 / 3),
                                    s4 * (2.0 / 15),
                                    s5 * (-2.0 / 45),
                                    s5 * s * (4.0 / 315),
                                    s5 * s2 * (-1.0 / 315)};
  static constexpr double kQ[] = {s * (1.0 / 3),   s2 * (-1.0 / 2), s3 * (2.0 / 5),
                                  s4 * (-2.0 / 9), s5 * (2.0 / 21), s5 * s * (-1.0 / 30)};
  static constexpr double kSquare[] = {s2 * (1.0 / 10), s3 * (-1.0 / 6), s4 * (1.0 / 7)};
  const DoubleLanes square = w * w, minus_q = -q;
  const DoubleLanes even = fma(minus_q, horner<0, 1>(kSquare, w), horner<0, 2>(kQ, square));
  const DoubleLanes of_q = fma(w, horner<1, 2>(kQ, square), even);
  return fma(w, horner<1, 2>(kOne, square), fma(minus_q, of_q, horner<0, 2>(kOne, square)));
}

/// t(a) = value (1 + change).
template <class T>
struct Tail {
  LanesOf<T> value, change;
};
/// Of 0 <= a < 16; of NaN, a change that is NaN.
template <class Fetch, class Kind, class T>
[[gnu::always_inline]] inline Tail<T> tail_of(LanesOf<T> a, const TailTable<Kind, T>& table) {
  using Table = TailTable<Kind, T>;
  constexpr T kWhole = accurate::Format<T>::kWhole / Table::kParts, kFew = T(Kind::kFew);
  const LanesOf<T> shifted = a + lanes(kWhole), r = shifted - lanes(kWhole);
  const LanesOf<T> d = (a - (shifted - lanes(kWhole + kFew))) - lanes(kFew);
  const Row<T> row = Fetch::template at<Table::kRows>(table.rows, shifted);
  // Its last three bits, added to a number whose last place is 1.
  constexpr T kWholes = accurate::Format<T>::kWhole, kZero = (kWholes + 4) * Table::kUnit;
  const LanesOf<T> wholes = with_bits(lanes(kWholes), row.slope, LaneBitsOf<T>{} + 7u);
  const LanesOf<T> lack = fma(wholes, lanes(Table::kUnit), lanes(-kZero));
  return {row.value, fma(row.slope * d, mean_slope<Kind>(r * d, d * d), lack)};
}

/// Below 0.94 ulp of float, tried on all arguments, and 1 of double, tried on millions; monotone.
template <std::floating_point T>
struct LaneForm<fn::Erfc, T> {
  static constexpr bool kIsFloat = sizeof(T) == 4;
  static constexpr T kMost = kIsFloat ? T(10.25) : T(12);  // erfc of the first rounds to 0

  struct Table : TailTable<ErfcTail, T> {
    using TailTable<ErfcTail, T>::kParts;
    /// From here on values are below the normal numbers of float, whose arithmetic is slow: these
    /// are -2^64 times as large.
    static constexpr int kFirstLifted = 2355;

    Table() {
      for (int i = 0; i <= static_cast<int>(kMost * T(kParts)); ++i) {
        this->set_row(i, kIsFloat && i >= kFirstLifted ? -0x1p64L : 1);
      }
      // Where neighbours differ by less than the errors of rows, a row begins no higher than the
      // one before it ends.
      for (int i = 0; i < kParts / 8; ++i) {
        for (int step = 1; rises_behind(i); ++step)
          this->set_row(i + 1, 1 - 0.5L * step * this->kUnit);
      }
    }
    bool rises_behind(int i) const {
      const T x = (T(i) + T(0.5)) / T(kParts);
      const auto at = [this](T a) { return apply<LoadedRows>(lanes(a), *this)[0]; };
      return at(std::nextafter(x, T(0))) < at(x) || at(x) < at(std::nextafter(x, T(1)));
    }
  };

  /// The lanes of arguments that are not covered.
  [[gnu::always_inline]] static int unsure(DoubleLanes x) requires(!kIsFloat) {
    return beyond(x, kMost);
  }
  template <class Fetch>
  [[gnu::always_inline]] static LanesOf<T> apply(LanesOf<T> x, const Table& table) {
    const Tail<T> t = tail_of<Fetch, ErfcTail, T>(at_most(size_of(x), kMost), table);
    LanesOf<T> y = fma(t.value, t.change, t.value);
    if constexpr (kIsFloat) {
      // The mantissa of 2^-62 - y is -2^64 y as a number below the normal ones, where it is one.
      using Whole [[gnu::vector_size(kVectorBytes)]] = int32_t;
      const auto bits = (Whole)y, small = (Whole)(0x1p-62f - y) & 0x7fffff;
      y = (LanesOf<T>)(bits > small ? bits : small);
    }
    return by_sign(x, y, lanes(T(2)) - y);
  }
};

/// Below 0.82 ulp of float, tried on all arguments, and 1 of double, tried on millions.
template <std::floating_point T>
struct LaneForm<fn::Gelu, T> {
  static constexpr T kMost = sizeof(T) == 4 ? T(12.75) : T(12);

  /// Of half the tail.
  struct Table : TailTable<NormalTail, T> {
    Table() {
      for (int i = 0; i <= static_cast<int>(kMost * T(this->kParts)); ++i) this->set_row(i, 0.5L);
    }
  };
  /// The lanes of arguments that are not covered.
  [[gnu::always_inline]] static int unsure(LanesOf<T> x) { return beyond(-x, kMost); }
  /// x P(X <= x) by the tail P(X > |x|).
  template <class Fetch>
  [[gnu::always_inline]] static LanesOf<T> apply(LanesOf<T> x, const Table& table) {
    const LanesOf<T> a = at_most(size_of(x), kMost);
    const Tail<T> t = tail_of<Fetch, NormalTail, T>(a, table);
    const LanesOf<T> product = a * t.value, low = product_minus(a, t.value, product);
    const LanesOf<T> y = rectified(x) - (product + fma(product, t.change, low));
    return with_sign(y, x);
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
