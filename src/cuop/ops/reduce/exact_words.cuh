// Superaccumulators (jit/kernels/exact_sum.h) as words in shared memory, the digits and behind them
// the specials, by the threads of a warp or a block. Of the digits few are not zero where numbers
// are near each other in size: the rest is not gone through.
#pragma once

#include "cuop/jit/kernels/exact_sum.h"

namespace cuop::jit {

inline constexpr int kExactWords = ExactSum::kWords;

/// A word after one step of carries from its neighbour: digits below 2^34, so that those of 2^29
/// sums can be added. `i` counts the words of sums that lie one behind the other.
CUOP_FN int64_t carried(const int64_t* words, int i) {
  const int place = i % kExactWords;
  if (place == ExactSum::kDigits) return words[i];
  const int64_t carry = place == 0 ? 0 : words[i - 1] >> 32;
  return (place == ExactSum::kDigits - 1 ? words[i] : words[i] & 0xffffffff) + carry;
}

/// The digits of a sum that are not zero, as a warp finds them, and its digits once they are
/// normalized: those of the window, below it zeros, above it zeros or what is negative.
struct DigitWindow {
  int low = ExactSum::kDigits, high = -1;  ///< high < low: all are zero
  int64_t carry = 0;                       ///< out of the window: 0 or, of a negative sum, -1

  CUOP_FN explicit DigitWindow(const int64_t* words) {
    for (int i = static_cast<int>(threadIdx.x) % 32; i < ExactSum::kDigits; i += 32) {
      if (words[i] == 0) continue;
      if (i < low) low = i;
      high = i;
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      const int other_low = __shfl_xor_sync(0xffffffffu, low, apart);
      const int other_high = __shfl_xor_sync(0xffffffffu, high, apart);
      if (other_low < low) low = other_low;
      if (other_high > high) high = other_high;
    }
    high += 2;  // a word has 64 bits
  }

  /// Whether it ends below the last digit, so that nothing is lost above it.
  CUOP_FN bool is_inside() const { return high < ExactSum::kDigits - 1; }

  /// By one thread.
  CUOP_FN void normalize(int64_t* words) {
    CUOP_ROLLED
    for (int i = low; i <= high; ++i) {
      const int64_t digit = words[i] + carry;
      carry = digit >> 32;
      words[i] = digit & 0xffffffff;
    }
  }
  /// The same of what has been normalized and is negative.
  CUOP_FN void negate(int64_t* words) const {
    int64_t rest = 1;
    CUOP_ROLLED
    for (int i = low; i <= high; ++i) {
      const int64_t digit = (words[i] ^ 0xffffffff) + rest;
      rest = digit >> 32;
      words[i] = digit & 0xffffffff;
    }
  }
};

/// All digits of a sum, by one thread.
CUOP_FN ExactSum sum_of_words(const int64_t* words) {
  ExactSum sum;
  CUOP_ROLLED
  for (int i = 0; i < ExactSum::kDigits; ++i) sum.digits[i] = words[i];
  sum.special = words[ExactSum::kDigits];
  return sum;
}

/// The sum divided by `divisor`, rounded once: by a warp, which the words belong to; for its first
/// thread.
CUOP_FN double rounded_words(int64_t* words, uint64_t divisor, FloatFormat format) {
  DigitWindow window(words);
  if (threadIdx.x % 32 != 0) return 0.0;
  const int64_t special = words[ExactSum::kDigits];
  if (special != 0) return special_sum(special);
  if (divisor != 1 || !window.is_inside()) {
    return sum_of_words(words).round_quotient(divisor, format);
  }
  window.normalize(words);
  const bool is_negative = window.carry < 0;
  if (is_negative) window.negate(words);
  const double result = cuop::detail::round_digits(words, window.low, window.high,
                                                   ExactSum::kMinExponent, false, format);
  return is_negative ? -result : result;
}

/// The words as a normalized sum in memory: by a warp, which they belong to.
CUOP_FN void store_words(int64_t* words, ExactSum& place) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  DigitWindow window(words);
  const bool is_inside = window.is_inside();
  if (!is_inside) window.high = ExactSum::kDigits - 2;
  if (lane == 0) {
    window.normalize(words);
    if (!is_inside) words[ExactSum::kDigits - 1] += window.carry;  // which keeps the sign
    place.special = words[ExactSum::kDigits];
    place.pending = 1;
  }
  const int64_t carry = __shfl_sync(0xffffffffu, window.carry, 0);
  __syncwarp();
  for (int i = lane; i < ExactSum::kDigits; i += 32) {
    const bool is_above = is_inside && i > window.high;
    const int64_t above = i == ExactSum::kDigits - 1 ? carry : carry & 0xffffffff;
    place.digits[i] = is_above ? above : words[i];
  }
}

}  // namespace cuop::jit
