// What the accurate functions are made of: numbers as unevaluated sums of two, products and
// quotients with their rounding errors (T. J. Dekker, Numer. Math. 18, 1971), polynomials and
// powers of two.
//
// Everything here is free of branches and of tables, so that compilers turn loops over it into
// vector instructions, and is the same text for float and double, on the host and on GPUs. Where
// there is a fused multiply-add it is used, so the last bit may differ from processors without one.
#pragma once

#include "cuop/jit/kernels/accurate/coefficients.h"
#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit::accurate {

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
  static constexpr Bits kMantissaMask = 0x7fffff;
  static constexpr Bits kHighHalf = 0xfffff000;  ///< of the mantissa: 12 bits
  static constexpr Bits kRootHalf = 0x3f3504f3;  ///< the bits of sqrt(1/2)
  static constexpr float kLeastNormal = 0x1p-126f, kMost = 0x1.fffffep127f;
  /// x + kWhole has x, rounded to a whole number, in its last bits; kPower adds the exponent's
  /// bias, less one (pow2_half).
  static constexpr float kWhole = 0x1.8p23f;
  static constexpr float kPower = 0x1.8p23f + 126;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
  static constexpr Bits kMantissaMask = 0xfffffffffffff;
  static constexpr Bits kHighHalf = 0xfffffffff8000000;
  static constexpr Bits kRootHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kLeastNormal = 0x1p-1022, kMost = 0x1.fffffffffffffp1023;
  static constexpr double kWhole = 0x1.8p52;
  static constexpr double kPower = 0x1.8p52 + 1022;
};

template <class T>
using BitsOf = typename Format<T>::Bits;

template <class T>
CUOP_FN BitsOf<T> bits_of(T x) {
  return __builtin_bit_cast(BitsOf<T>, x);
}
template <class T>
CUOP_FN T from_bits(BitsOf<T> bits) {
  return __builtin_bit_cast(T, bits);
}

/// What an attempt is unsure of: the first bit is 1 where an argument is not covered. A sum of
/// whole numbers says so in fewer instructions than a comparison.
template <class T>
using Doubt = BitsOf<T>;
template <class Bits>
CUOP_FN bool is_any(Bits doubt) {
  return (doubt >> (8 * sizeof(Bits) - 1)) != 0;
}
/// Of |x| greater than `most` and of NaN.
template <class T>
CUOP_FN Doubt<T> doubt_beyond(T x, T most) {
  constexpr BitsOf<T> kAllButSign = ~BitsOf<T>(0) >> 1;
  return bits_of(most) - (bits_of(x) & kAllButSign);
}
/// Of x less than `least`, which is positive, or greater than `most`, and of NaN.
template <class T>
CUOP_FN Doubt<T> doubt_outside(T x, T least, T most) {
  const BitsOf<T> above = bits_of(x) - bits_of(least);
  return above | (bits_of(most) - bits_of(least) - above);
}

/// What the first of two loops over an array hands to the second one.
template <class T, int Count>
struct Stage {
  static constexpr int kCount = Count;
  T values[Count];
};
/// Of what is done in one loop.
template <class T>
struct Stage<T, 0> {
  static constexpr int kCount = 0;
};

/// a where the condition holds, else b. On conditional expressions compilers compute twice what
/// follows, the second time of a constant, which costs more selections. Without fused operations
/// there are no masks of 64 bits either.
template <class T>
CUOP_FN T chosen(bool condition, T a, T b) {
  if constexpr (math::has_fast_fma || sizeof(T) == 4) {
    return choose(condition, a, b);
  } else {
    return condition ? a : b;
  }
}
/// Both as they are, or exchanged where the last bit of `count` is 1.
template <class T>
struct Pair {
  T first, second;
};
template <class T>
CUOP_FN Pair<T> exchanged(T first, T second, BitsOf<T> count) {
  if constexpr (math::has_fast_fma) {
    const bool is_odd = (count & 1) != 0;
    return {is_odd ? second : first, is_odd ? first : second};
  } else {  // the comparison of whole numbers of 64 bits is missing too
    const BitsOf<T> change = (bits_of(first) ^ bits_of(second)) & (BitsOf<T>(0) - (count & 1));
    return {from_bits<T>(bits_of(first) ^ change), from_bits<T>(bits_of(second) ^ change)};
  }
}
/// The smaller one; NaN of a NaN.
template <class T>
CUOP_FN T at_most(T size, T most) {
  return chosen(size > most, most, size);
}

/// a * b + c, rounded once where that is one instruction.
template <class T>
CUOP_FN T multiply_add(T a, T b, T c) {
  if constexpr (math::has_fast_fma) {
    return math::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

/// By Horner's rule; the constant term is coefficients[First]. Or every Stride-th term, of that
/// power of x.
template <int First = 0, int Stride = 1, class T, int Count>
CUOP_FN T horner(const T (&coefficients)[Count], T power) {
  if constexpr (First + Stride >= Count) {
    return coefficients[First];
  } else {
    return multiply_add(horner<First + Stride, Stride>(coefficients, power), power,
                        coefficients[First]);
  }
}
/// x to the power of 2^Log.
template <int Log, class T>
CUOP_FN T squared(T x) {
  if constexpr (Log == 0) {
    return x;
  } else {
    const T root = squared<Log - 1>(x);
    return root * root;
  }
}
/// `Terms` of them by halves (G. Estrin, 1960).
template <int First, int Terms, class T, int Count>
CUOP_FN T by_halves(const T (&coefficients)[Count], T x) {
  if constexpr (Terms == 1) {
    return coefficients[First];
  } else {
    constexpr int kLog = Terms > 16 ? 4 : Terms > 8 ? 3 : Terms > 4 ? 2 : Terms > 2 ? 1 : 0;
    constexpr int kHalf = 1 << kLog;
    return multiply_add(by_halves<First + kHalf, Terms - kHalf>(coefficients, x), squared<kLog>(x),
                        by_halves<First, kHalf>(coefficients, x));
  }
}
/// All of them in shorter chains, which processors work at side by side, and whose rounding errors
/// are a little larger: long ones in two or four; where a step is two operations all by halves.
template <int First = 0, class T, int Count>
CUOP_FN T polynomial(const T (&coefficients)[Count], T x) {
  constexpr int kTerms = Count - First, kTwoChains = 7, kFourChains = 16;
  const T square = x * x;
  if constexpr (!math::has_fast_fma) {
    return by_halves<First, kTerms>(coefficients, x);
  } else if constexpr (kTerms < kTwoChains) {
    return horner<First>(coefficients, x);
  } else if constexpr (kTerms >= kFourChains) {
    const T fourth = square * square;
    const T low = multiply_add(horner<First + 1, 4>(coefficients, fourth), x,
                               horner<First, 4>(coefficients, fourth));
    const T high = multiply_add(horner<First + 3, 4>(coefficients, fourth), x,
                                horner<First + 2, 4>(coefficients, fourth));
    return multiply_add(high, square, low);
  } else {
    return multiply_add(horner<First + 1, 2>(coefficients, square), x,
                        horner<First, 2>(coefficients, square));
  }
}
/// high + low, where low is what rounding took from high.
template <class T>
struct Sum {
  T high, low;
};

template <class T>
CUOP_FN Sum<T> two_sum(T a, T b) {
  const T high = a + b, part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}
/// The same where |a| >= |b| or a is 0.
template <class T>
CUOP_FN Sum<T> quick_sum(T a, T b) {
  const T high = a + b;
  return {high, b - (high - a)};
}

/// The upper half of x's digits: the product of two such numbers is exact.
template <class T>
CUOP_FN T upper_half(T x) {
  return from_bits<T>(bits_of(x) & Format<T>::kHighHalf);
}

template <class T>
CUOP_FN Sum<T> two_product(T a, T b) {
  const T high = a * b;
  if constexpr (math::has_fast_fma) {
    return {high, math::fma(a, b, -high)};
  } else {
    const T a1 = upper_half(a), a2 = a - a1, b1 = upper_half(b), b2 = b - b1;
    return {high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
  }
}
template <class T>
CUOP_FN Sum<T> product(Sum<T> a, Sum<T> b) {
  const Sum<T> p = two_product(a.high, b.high);
  return {p.high, p.low + (a.high * b.low + a.low * b.high)};
}

/// c - a * b, which the caller knows to be nearly 0.
template <class T>
CUOP_FN T residual(T c, T a, T b) {
  if constexpr (math::has_fast_fma) {
    return math::fma(-a, b, c);
  } else {
    const Sum<T> p = two_product(a, b);
    return (c - p.high) - p.low;
  }
}

template <class T>
CUOP_FN Sum<T> quotient(Sum<T> n, Sum<T> d) {
  const T inverse = 1 / d.high, q = n.high * inverse;
  const T rest = residual(n.high, q, d.high) + (n.low - q * d.low);
  return {q, rest * inverse};
}

/// The same for processors without fused operations: `high` has the upper half of the digits, so
/// that no product has to be split for what is left.
template <class T>
CUOP_FN Sum<T> short_quotient(Sum<T> n, Sum<T> d) {
  const T inverse = 1 / d.high, q = upper_half(n.high * inverse), first = upper_half(d.high);
  const T rest = ((n.high - q * first) - q * (d.high - first)) + (n.low - q * d.low);
  return {q, rest * inverse};
}

/// 2^(n - 1) of n + kPower.
template <class T>
CUOP_FN T pow2_half(T shifted) {
  return from_bits<T>(bits_of(shifted) << Format<T>::kMantissa);
}

/// value * 2^n of n + kPower, where value is about 1 to 1000 and 2^n may be down to the square of
/// the least normal number; `is_small` holds wherever the result may be below the normal numbers.
template <class T>
CUOP_FN T scaled(T value, T shifted, bool is_small) {
  constexpr T kLift = sizeof(T) == 4 ? T(64) : T(128);
  constexpr T kDrop = sizeof(T) == 4 ? T(0x1p-64) : T(0x1p-128);
  const T power = pow2_half(is_small ? shifted + kLift : shifted);
  return (value + value) * power * (is_small ? kDrop : T(1));
}

}  // namespace cuop::jit::accurate
