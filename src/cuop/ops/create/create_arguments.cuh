// The numbers of arange, linspace and logspace by their place: host and device compute them from
// the same lines, so that their bits are the same.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// A number as an unevaluated sum, the second part at most half a unit of the first.
struct TwoDoubles {
  double high, low;
};

/// Of |a| >= |b| (Dekker 1971).
CUOP_FN TwoDoubles quick_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
CUOP_FN TwoDoubles product(double a, double b) {
  const double rounded = a * b;
  return {rounded, math::fma(a, b, -rounded)};
}
CUOP_FN TwoDoubles product(TwoDoubles a, TwoDoubles b) {
  const TwoDoubles first = product(a.high, b.high);
  return quick_sum(first.high, first.low + (a.high * b.low + a.low * b.high));
}

/// 2^t - 1 for |t| <= 0.51 or so, to 2^-70: the exponential series at a sixteenth of its argument,
/// in double precision from the cube on, then squared four times.
CUOP_FN TwoDoubles exp2_minus_1(TwoDoubles t) {
  constexpr TwoDoubles kLog2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const TwoDoubles whole = product(t, kLog2);
  const TwoDoubles z = {whole.high * 0x1p-4, whole.low * 0x1p-4};
  const double x = z.high;
  double tail = 1.0 / 362880;
  tail = tail * x + 1.0 / 40320;
  tail = tail * x + 1.0 / 5040;
  tail = tail * x + 1.0 / 720;
  tail = tail * x + 1.0 / 120;
  tail = tail * x + 1.0 / 24;
  tail = tail * x + 1.0 / 6;
  const TwoDoubles square = product(z, z);
  TwoDoubles y = quick_sum(z.high, 0.5 * square.high);
  y = quick_sum(y.high, y.low + (z.low + 0.5 * square.low + tail * x * square.high));
  CUOP_ROLLED
  for (int i = 0; i < 4; ++i) {
    const TwoDoubles squared = product(y, y);
    const TwoDoubles sum = quick_sum(2 * y.high, squared.high);
    y = quick_sum(sum.high, sum.low + (2 * y.low + squared.low));
  }
  return y;
}

/// One base and what is needed of it.
struct PowerBase {
  TwoDoubles log2;      ///< of its size; of special ones unused
  double below, above;  ///< sizes of special ones' powers to numbers below and above 0
  int64_t is_special;   ///< 0 or 1: 0, infinite or NaN
  int64_t is_negative;

  CUOP_FN double size(double exponent) const {
    if (exponent == 0.0) return 1.0;
    if (is_special != 0) {
      return math::is_nan(exponent) ? exponent : exponent < 0.0 ? below : above;
    }
    const TwoDoubles first = product(exponent, log2.high);
    if (!(math::abs(first.high) < 1100.0)) {
      return math::is_nan(first.high) ? first.high : first.high > 0.0 ? math::infinity : 0.0;
    }
    const double whole = math::rint(first.high);
    const TwoDoubles rest = quick_sum(first.high - whole, first.low + exponent * log2.low);
    const TwoDoubles y = exp2_minus_1(rest);
    const TwoDoubles sum = quick_sum(1.0, y.high);
    return math::ldexp(sum.high + (sum.low + y.low), static_cast<int>(whole));
  }
  /// As pow has it.
  CUOP_FN double to_the(double exponent) const {
    const double result = size(exponent);
    if (is_negative == 0) return result;
    const double half = math::floor(exponent * 0.5);
    if (math::floor(exponent) != exponent) return is_special != 0 ? result : math::nan;
    return half * 2.0 == exponent ? result : -result;
  }
};

/// first + i * by, exactly, where every number is one of int64 or uint64.
struct WholeSequence {
  uint64_t first, by;                      ///< modulo 2^64
  int64_t large_begin = 0, large_end = 0;  ///< the places whose numbers int64 does not hold

  CUOP_FN bool is_large(int64_t i) const { return i >= large_begin && i < large_end; }
  CUOP_FN uint64_t bits(int64_t i) const { return first + static_cast<uint64_t>(i) * by; }
};

/// first + i * by in double precision, but for one place that is given.
struct RealSequence {
  double first, by;
  int64_t given_place = -1;
  double given = 0;
  int64_t is_floored = 0;  ///< 0 or 1

  CUOP_FN double value(int64_t i) const {
    const double wanted = i == given_place ? given : first + static_cast<double>(i) * by;
    return is_floored != 0 ? math::floor(wanted) : wanted;
  }
};

/// Powers of one base.
struct PowerSequence {
  PowerBase base;
  RealSequence exponents;

  CUOP_FN double value(int64_t i) const { return base.to_the(exponents.value(i)); }
};

template <class Sequence>
struct SequenceFill {
  void* out;
  int64_t count;
  Sequence sequence;
};
using WholeFill = SequenceFill<WholeSequence>;
using RealFill = SequenceFill<RealSequence>;
using PowerFill = SequenceFill<PowerSequence>;

}  // namespace cuop::jit
