// A sum of floating numbers without any error, rounded once at the end: a fixed-point number wide
// enough for every bit that a double can have, plus 64 bits of carries.
//
// After Kulisch's long accumulator, with lazily propagated carries (Neal, "Fast exact summation
// using small and large superaccumulators", 2015). The value is
//     digits[0] 2^-1074 + digits[1] 2^(32-1074) + ... + digits[67] 2^(67*32-1074),
// each digit signed, so that neither order nor grouping of the additions can matter.
#pragma once

#include "cuop/jit/kernels/narrow.h"

namespace cuop {

/// Where a binary format rounds.
struct FloatFormat {
  int precision;    ///< bits of the significand
  int min_lsb;      ///< exponent of the smallest subnormal
  double overflow;  ///< magnitudes at or above (a power of two) become infinity
};
/// Of a type; that of double for all that are no floats.
template <class T>
inline constexpr FloatFormat format_of{53, -1074, 0.0};  // ldexp overflows by itself
template <>
inline constexpr FloatFormat format_of<float>{24, -149, 0x1p128};
template <>
inline constexpr FloatFormat format_of<jit::Half>{11, -24, 0x1p16};
template <>
inline constexpr FloatFormat format_of<jit::BFloat16>{8, -133, 0x1p128};

/// A plain value: copy its bytes to send it; equal sums have equal bytes after `normalize`.
struct ExactSum {
  static constexpr int kDigits = 68;
  /// In memory that threads share: the digits, the specials behind them.
  static constexpr int kWords = kDigits + 1;
  static constexpr int kMinExponent = -1074;
  /// Additions that digits can take before carries must be propagated (each adds less than 2^33).
  static constexpr int64_t kMaxPending = int64_t{1} << 29;
  enum Special : int64_t { kPositiveInfinity = 1, kNegativeInfinity = 2, kNaN = 4 };

  int64_t digits[kDigits] = {};
  int64_t pending = 0;  ///< additions since carries were last propagated
  int64_t special = 0;  ///< which of inf, -inf, NaN have been added

  /// What one addition changes: three neighbouring digits.
  struct Change {
    int first;
    int64_t digits[3];
  };
  /// Of significand * 2^(position + kMinExponent).
  CUOP_FN static Change change_by(uint64_t significand, int position, bool is_negative) {
    const int shift = position & 31;
    const uint64_t low = (significand & 0xffffffff) << shift;
    const uint64_t high = (significand >> 32) << shift;
    const int64_t sign = is_negative ? -1 : 1;
    return {position >> 5,
            {sign * static_cast<int64_t>(low & 0xffffffff),
             sign * static_cast<int64_t>((low >> 32) + (high & 0xffffffff)),
             sign * static_cast<int64_t>(high >> 32)}};
  }
  /// Of a finite number.
  CUOP_FN static Change change_by(double value) {
    const uint64_t bits = __builtin_bit_cast(uint64_t, value);
    const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
    uint64_t significand = bits & 0xfffffffffffffu;
    if (exponent != 0) significand |= uint64_t{1} << 52;
    return change_by(significand, exponent == 0 ? 0 : exponent - 1, (bits >> 63) != 0);
  }
  /// Which of inf, -inf, NaN a number is; 0 for a finite one.
  CUOP_FN static int64_t special_of(double value) {
    const uint64_t bits = __builtin_bit_cast(uint64_t, value);
    if (((bits >> 52) & 0x7ff) != 0x7ff) return 0;
    if ((bits & 0xfffffffffffffu) != 0) return kNaN;
    return (bits >> 63) != 0 ? kNegativeInfinity : kPositiveInfinity;
  }

  CUOP_FN void add(double value) {
    const int64_t kind = special_of(value);
    if (kind != 0) {
      special |= kind;
    } else {
      apply(change_by(value));
    }
  }

  CUOP_FN void add_integer(int64_t value) {
    const uint64_t magnitude = static_cast<uint64_t>(value);
    apply(change_by(value < 0 ? uint64_t{0} - magnitude : magnitude, -kMinExponent, value < 0));
  }
  CUOP_FN void add_integer(uint64_t value) { apply(change_by(value, -kMinExponent, false)); }
  /// high * 2^64 + low.
  CUOP_FN void add_integer(int64_t high, uint64_t low) {
    const uint64_t magnitude = static_cast<uint64_t>(high);
    apply(change_by(high < 0 ? uint64_t{0} - magnitude : magnitude, 64 - kMinExponent, high < 0));
    add_integer(low);
  }

  /// A sum of integers in two's complement: the 64 bits from bit 64 * word on. Of a normalized sum.
  CUOP_FN uint64_t integer_bits(int word) const {
    constexpr int kPoint = -kMinExponent, kShift = kPoint & 31;
    const int64_t* from = digits + (kPoint >> 5) + 2 * word;
    const auto low = static_cast<uint64_t>(from[0]), middle = static_cast<uint64_t>(from[1]),
               high = static_cast<uint64_t>(from[2]);
    return (low >> kShift) | (middle << (32 - kShift)) | (high << (64 - kShift));
  }

  CUOP_FN void merge(const ExactSum& other) {
    CUOP_ROLLED
    for (int i = 0; i < kDigits; ++i) digits[i] += other.digits[i];
    note_merged(other);
  }
  /// What merging is beside the digits, which have been added.
  CUOP_FN void note_merged(const ExactSum& other) {
    special |= other.special;
    pending += other.pending + 1;
    if (pending >= kMaxPending / 2) normalize();
  }

  /// Brings every digit but the last, which keeps the sign, into [0, 2^32).
  CUOP_FN void normalize() {
    int64_t carry = 0;
    CUOP_ROLLED
    for (int i = 0; i < kDigits - 1; ++i) {
      const int64_t digit = digits[i] + carry;
      carry = digit >> 32;
      digits[i] = digit & 0xffffffff;
    }
    digits[kDigits - 1] += carry;
    pending = 1;
  }

  /// The sum rounded to nearest even in the format; a NaN, inf or overflow as IEEE addition has it.
  CUOP_FN double round(FloatFormat format = format_of<double>) const {
    return round_quotient(1, format);
  }

  /// The sum divided by `divisor` > 0, rounded once.
  CUOP_FN double round_quotient(uint64_t divisor, FloatFormat format = format_of<double>) const;

 private:
  CUOP_FN void apply(const Change& change) {
    if (pending >= kMaxPending) normalize();
    ++pending;
    for (int i = 0; i < 3; ++i) digits[change.first + i] += change.digits[i];
  }
};

namespace detail {

/// A non-negative number rounded to nearest even: base 2^32 digits from `low` to `high`, each in
/// [0, 2^32), in units of 2^exponent; something below the last of them was dropped where
/// `is_inexact`.
template <class Digit>
CUOP_FN double round_digits(const Digit* digits, int low, int high, int exponent, bool is_inexact,
                            FloatFormat format) {
  CUOP_ROLLED
  while (high >= low && digits[high] == 0) --high;
  if (high < low) return 0.0;
  const auto digit = [=](int i) {
    return i < low || i > high ? uint64_t{0} : static_cast<uint64_t>(digits[i]);
  };
  int length = 32 * high;
  CUOP_ROLLED
  for (uint64_t rest = digit(high); rest != 0; rest >>= 1) ++length;
  int lsb = length - format.precision;
  if (lsb < format.min_lsb - exponent) lsb = format.min_lsb - exponent;
  if (lsb < 0) lsb = 0;
  const int place = lsb >> 5, shift = lsb & 31;
  uint64_t significand = (digit(place) >> shift) | (digit(place + 1) << (32 - shift));
  if (shift != 0) significand |= digit(place + 2) << (64 - shift);
  if (lsb > 0) {
    const int half = (lsb - 1) >> 5, bit = (lsb - 1) & 31;
    bool is_above = is_inexact || (digit(half) & ((uint64_t{1} << bit) - 1)) != 0;
    CUOP_ROLLED
    for (int i = low; i < half && !is_above; ++i) is_above = digit(i) != 0;
    const bool is_half = ((digit(half) >> bit) & 1u) != 0;
    if (is_half && (is_above || (significand & 1u) != 0)) ++significand;
  }
  const double result = jit::math::ldexp(static_cast<double>(significand), lsb + exponent);
  return format.overflow != 0.0 && result >= format.overflow ? jit::math::infinity : result;
}

/// Base 2^32 digits of a non-negative number in units of 2^exponent, most significant last.
struct Magnitude {
  static constexpr int kCount = ExactSum::kDigits + 1;
  uint32_t digits[kCount];
  int exponent;
  bool is_inexact = false;  ///< a part below the last digit was dropped

  /// Schoolbook division by one 64-bit number, the remainder kept in 64 bits: each step brings in
  /// one bit of the dividend, so that nothing wider is needed on any machine.
  CUOP_FN void divide(uint64_t divisor) {
    uint64_t remainder = 0;
    if (divisor >> 32 == 0) {
      CUOP_ROLLED
      for (int i = kCount - 1; i >= 0; --i) {
        const uint64_t part = (remainder << 32) | digits[i];
        digits[i] = static_cast<uint32_t>(part / divisor);
        remainder = part % divisor;
      }
      is_inexact = is_inexact || remainder != 0;
      return;
    }
    CUOP_ROLLED
    for (int i = kCount - 1; i >= 0; --i) {
      uint32_t quotient = 0;
      if (remainder == 0 && digits[i] == 0) continue;
      CUOP_ROLLED
      for (int b = 31; b >= 0; --b) {
        const bool overflows = (remainder >> 63) != 0;
        remainder = (remainder << 1) | ((digits[i] >> b) & 1u);
        quotient <<= 1;
        if (overflows || remainder >= divisor) {
          remainder -= divisor;
          quotient |= 1u;
        }
      }
      digits[i] = quotient;
    }
    is_inexact = is_inexact || remainder != 0;
  }

  CUOP_FN double round(FloatFormat format) const {
    return round_digits(digits, 0, kCount - 1, exponent, is_inexact, format);
  }
};

}  // namespace detail

/// What a sum is to which such numbers have been added; 0 where it is finite.
CUOP_FN double special_sum(int64_t special) {
  const bool has_both = (special & 3) == 3;
  if (special == 0) return 0.0;
  if ((special & ExactSum::kNaN) != 0 || has_both) return jit::math::nan;
  return (special & ExactSum::kPositiveInfinity) != 0 ? jit::math::infinity : -jit::math::infinity;
}

CUOP_FN double ExactSum::round_quotient(uint64_t divisor, FloatFormat format) const {
  if (special != 0) return special_sum(special);
  ExactSum sum = *this;
  sum.normalize();
  const bool is_negative = sum.digits[kDigits - 1] < 0;
  if (is_negative) {
    CUOP_ROLLED
    for (int i = 0; i < kDigits; ++i) sum.digits[i] = -sum.digits[i];
    sum.normalize();
  }
  double result;
  if (divisor == 1) {
    result = detail::round_digits(sum.digits, 0, kDigits - 1, kMinExponent, false, format);
  } else {
    // One digit below the smallest subnormal holds the bit that decides a quotient's rounding.
    detail::Magnitude magnitude{{}, kMinExponent - 32};
    CUOP_ROLLED
    for (int i = 0; i < kDigits; ++i) {
      magnitude.digits[i + 1] = static_cast<uint32_t>(sum.digits[i]);
    }
    magnitude.divide(divisor);
    result = magnitude.round(format);
  }
  return is_negative ? -result : result;
}

}  // namespace cuop
