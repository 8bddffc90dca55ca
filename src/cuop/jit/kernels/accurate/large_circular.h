// sin, cos and tan of numbers of type double that circular.h does not reduce. CUDA's were seen 1.6
// ulp away, and glibc's 14 where x is nearly a multiple of pi/2.
//
// x is m 2^e with a whole m. Of x 2/pi only what is left of a division by 4 counts, and so of 2/pi
// only the bits from 2^(2 - e) on: m times 192 of them is x 2/pi modulo 4 with 139 bits behind the
// point (M. Payne and R. Hanek, SIGNUM Newsletter 18, 1983). No number of type double comes nearer
// to a multiple of pi/2 than 2^-62 of it (W. Kahan), so 77 bits or more are left.
#pragma once

#include "cuop/jit/kernels/accurate/circular.h"

namespace cuop::jit::accurate {

/// The upper half of a product of 128 bits.
CUOP_FN uint64_t upper_product(uint64_t a, uint64_t b) {
#ifdef __CUDACC_RTC__
  return __umul64hi(a, b);
#else
  __extension__ using Product = unsigned __int128;
  return static_cast<uint64_t>(Product{a} * b >> 64);
#endif
}
/// Of a number that is not 0.
CUOP_FN int leading_zeros(uint64_t bits) {
#ifdef __CUDACC_RTC__
  return __clzll(static_cast<int64_t>(bits));
#else
  return __builtin_clzll(bits);
#endif
}

/// x - quarters pi/2.
struct LargeTurns {
  Sum<double> r;
  uint64_t quarters;
};

/// Of a finite |x| > 2^19, |r| <= pi/4.
CUOP_FN LargeTurns large_reduced(double x) {
  // 64 zeros, and the bits of 2/pi behind the point.
  const uint64_t kTwoByPi[] = {0,
                               0xa2f9836e4e441529,
                               0xfc2757d1f534ddc0,
                               0xdb6295993c439041,
                               0xfe5163abdebbc561,
                               0xb7246e3a424dd2e0,
                               0x06492eea09d1921c,
                               0xfe1deb1cb129a73e,
                               0xe88235f52ebb4484,
                               0xe99c7026b45f7e41,
                               0x3991d639835339f4,
                               0x9c845f8bbdf9283b,
                               0x1ff897ffde05980f,
                               0xef2f118b5a0a6d1f,
                               0x6d367ecf27cb09b7,
                               0x4f463f669e5fea2d,
                               0x7527bac7ebe5f17b,
                               0x3d0739f78a5292ea,
                               0x6bfb5fb11f8d5d08,
                               0x56033046fc7b6bab};
  using F = Format<double>;
  const uint64_t bits = bits_of(x);
  const uint64_t m = (bits & F::kMantissaMask) | (F::kMantissaMask + 1);
  const int e = static_cast<int>(bits >> F::kMantissa & 0x7ff) - F::kBias - F::kMantissa;
  const int place = e - 2 + 64, word = place / 64, shift = place % 64;
  const auto from = [&](int i) {
    const uint64_t next = shift > 0 ? kTwoByPi[word + i + 1] >> (64 - shift) : 0;
    return kTwoByPi[word + i] << shift | next;
  };
  const uint64_t w2 = from(0), w1 = from(1), w0 = from(2);

  // f2 f1 f0 = m w modulo 2^192, a fraction of four quarters.
  const uint64_t f0 = m * w0, high0 = upper_product(m, w0);
  const uint64_t low1 = m * w1, f1 = low1 + high0;
  const uint64_t f2 = m * w2 + upper_product(m, w1) + (f1 < low1);

  uint64_t quarters = f2 >> 62;
  uint64_t high = f2 << 2 | f1 >> 62, middle = f1 << 2 | f0 >> 62, low = f0 << 2;
  const bool is_beyond_half = high >> 63 != 0;
  if (is_beyond_half) {  // to the nearest quarter: what is missing
    ++quarters;
    low = 0 - low;
    middle = ~middle + (low == 0);
    high = ~high + (low == 0 && middle == 0);
  }
  const int zeros = leading_zeros(high);
  if (zeros > 0) {
    high = high << zeros | middle >> (64 - zeros);
    middle = middle << zeros | low >> (64 - zeros);
  }
  const double unit =
      from_bits<double>(static_cast<uint64_t>(F::kBias - 64 - zeros) << F::kMantissa);
  constexpr uint64_t kTail = 0x7ff;  // of `high`, behind 53 bits
  const double first = static_cast<double>(high & ~kTail) * unit;
  const double rest = static_cast<double>((high & kTail) << 42 | middle >> 22) * 0x1p-42 * unit;
  const Sum<double> half_pi = {HalfPi::kA, HalfPi::kB};
  const Sum<double> p = product(quick_sum(first, rest), half_pi);
  const Sum<double> r = quick_sum(p.high, p.low);
  const bool is_negative = is_beyond_half != (x < 0);
  return {{is_negative ? -r.high : r.high, is_negative ? -r.low : r.low},
          x < 0 ? 0 - quarters : quarters};
}

CUOP_SELDOM_FN double large_sin(double x) {
  if (!(math::abs(x) < math::infinity)) return x - x;
  const LargeTurns turns = large_reduced(x);
  return sine_of(turns.r, turns.quarters & 3);
}
CUOP_SELDOM_FN double large_cos(double x) {
  if (!(math::abs(x) < math::infinity)) return x - x;
  const LargeTurns turns = large_reduced(x);
  return sine_of(turns.r, (turns.quarters + 1) & 3);
}
CUOP_SELDOM_FN double large_tan(double x) {
  if (!(math::abs(x) < math::infinity)) return x - x;
  const LargeTurns turns = large_reduced(x);
  return tangent_of(turns.r, turns.quarters);
}

}  // namespace cuop::jit::accurate
