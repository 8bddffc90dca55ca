// Random words as numbers. Only operations that IEEE 754 rounds in one way (+ - * / sqrt fma and
// conversions) are used, every product that meets a sum is an explicit fma, and the polynomials are
// our own (interpolation at Chebyshev nodes), so host and GPU give the same bits whatever the
// compiler contracts. Kernel text.
#pragma once

#ifndef __CUDACC_RTC__
#include <cmath>
#endif

#include "cuop/jit/kernels/philox.h"

namespace cuop::jit {

template <class Real>
struct Pair {
  Real first, second;
};

static inline WideWord wide(Word low, Word high) {
  return (static_cast<WideWord>(high) << 32) | low;
}

/// The constants that differ between the two precisions.
template <class Real>
struct RandomConstants;

template <>
struct RandomConstants<float> {
  using Bits = Word;
  using SignedBits = int;
  static constexpr int kBits = 32;
  static constexpr int kMantissa = 23;
  static constexpr Bits kRootHalf = 0x3f3504f3u;  // sqrt(1/2)
  static constexpr float kUnit = 0x1p-32f;
  static constexpr float kQuarterTurn = 0x1.921fb6p-30f;  // pi/2 / 2^30
  static constexpr float kLn2High = 0x1.62ep-1f;
  static constexpr float kLn2Low = 0x1.0bfbe8p-15f;
  // atanh(s)/s = 1 + s^2 P(s^2); sin(x) = x + x^3 P(x^2); cos(x) = 1 - x^2/2 + x^4 P(x^2)
  static constexpr float kLog[] = {0x1.55555cp-2f, 0x1.997c2ep-3f, 0x1.2ee656p-3f};
  static constexpr float kSin[] = {-0x1.555552p-3f, 0x1.110c28p-7f, -0x1.9ac98ep-13f};
  static constexpr float kCos[] = {0x1.555554p-5f, -0x1.6c12d2p-10f, 0x1.9bd88p-16f};
};

template <>
struct RandomConstants<double> {
  using Bits = WideWord;
  using SignedBits = long long;
  static constexpr int kBits = 64;
  static constexpr int kMantissa = 52;
  static constexpr Bits kRootHalf = 0x3fe6a09e667f3bcdull;
  static constexpr double kUnit = 0x1p-64;
  static constexpr double kQuarterTurn = 0x1.921fb54442d18p-62;
  static constexpr double kLn2High = 0x1.62e42p-1;
  static constexpr double kLn2Low = 0x1.fdf473de6af28p-22;
  static constexpr double kLog[] = {
      0x1.5555555555558p-2, 0x1.99999999952d7p-3, 0x1.2492492df281ap-3, 0x1.c71c62e3f11e5p-4,
      0x1.7462b51cb66eap-4, 0x1.39fe51a7c12d9p-4, 0x1.2b5900de57b3bp-4};
  static constexpr double kSin[] = {
      -0x1.5555555555555p-3,  0x1.1111111111110p-7,  -0x1.a01a01a019937p-13, 0x1.71de3a54607a5p-19,
      -0x1.ae64541295cdfp-26, 0x1.61217ee5cca1bp-33, -0x1.ab17bdcbd33b3p-41};
  static constexpr double kCos[] = {0x1.5555555555555p-5,  -0x1.6c16c16c16967p-10,
                                    0x1.a01a019f4e9b4p-16, -0x1.27e4fa17bf139p-22,
                                    0x1.1eeb68cd22f56p-29, -0x1.907d8f29fe7d9p-37};
};

namespace exact {

static inline float multiply_add(float a, float b, float c) { return ::fmaf(a, b, c); }
static inline double multiply_add(double a, double b, double c) { return ::fma(a, b, c); }
static inline float root(float a) { return ::sqrtf(a); }
static inline double root(double a) { return ::sqrt(a); }

template <int Degree, class Real, int Count>
static inline Real polynomial(const Real (&coefficients)[Count], Real x) {
  if constexpr (Degree == Count - 1) {
    return coefficients[Degree];
  } else {
    return multiply_add(x, polynomial<Degree + 1>(coefficients, x), coefficients[Degree]);
  }
}

}  // namespace exact

/// Natural logarithm of a positive normal number, to about 2 ulp.
template <class Real>
static inline Real log_positive(Real u) {
  using C = RandomConstants<Real>;
  using Bits = typename C::Bits;
  using SignedBits = typename C::SignedBits;
  // u = m 2^e with m in [sqrt(1/2), sqrt(2))
  const Bits bits = __builtin_bit_cast(Bits, u);
  const SignedBits e = static_cast<SignedBits>(bits - C::kRootHalf) >> C::kMantissa;
  const Real m = __builtin_bit_cast(Real, bits - (static_cast<Bits>(e) << C::kMantissa));
  const Real f = m - Real(1);
  const Real s = f / (Real(2) + f);
  const Real z = s * s;
  const Real twice = s + s;
  const Real log_m = exact::multiply_add(twice * z, exact::polynomial<0>(C::kLog, z), twice);
  const Real exponent = static_cast<Real>(static_cast<int>(e));
  return exact::multiply_add(exponent, C::kLn2High,
                             exact::multiply_add(exponent, C::kLn2Low, log_m));
}

/// Two independent standard normal numbers from two words, by the transform of Box and Muller (Ann.
/// Math. Statist. 29, 1958): radius sqrt(-2 ln u) and an angle of `turn` parts of a whole turn.
template <class Real>
static inline Pair<Real> box_muller(typename RandomConstants<Real>::Bits radius,
                                    typename RandomConstants<Real>::Bits turn) {
  using C = RandomConstants<Real>;
  using Bits = typename C::Bits;
  using SignedBits = typename C::SignedBits;
  // u in (0, 1]: half a unit above the word.
  const Real u = exact::multiply_add(static_cast<Real>(radius), C::kUnit, C::kUnit / Real(2));
  const Real r = exact::root(Real(-2) * log_positive(u));
  // The nearest quarter turn, and the rest in [-pi/4, pi/4].
  constexpr Bits kEighth = Bits(1) << (C::kBits - 3);
  const Bits quarter = static_cast<Bits>(turn + kEighth) >> (C::kBits - 2);
  const auto rest = static_cast<SignedBits>(turn - (quarter << (C::kBits - 2)));
  const Real x = static_cast<Real>(rest) * C::kQuarterTurn;
  const Real z = x * x;
  const Real sine = exact::multiply_add(x * z, exact::polynomial<0>(C::kSin, z), x);
  const Real cosine = exact::multiply_add(z * z, exact::polynomial<0>(C::kCos, z),
                                          exact::multiply_add(z, Real(-0.5), Real(1)));
  const bool is_swapped = (quarter & 1) != 0;
  const Real along = is_swapped ? sine : cosine;
  const Real across = is_swapped ? cosine : sine;
  const bool is_left = ((quarter + 1) & 2) != 0;
  const bool is_below = (quarter & 2) != 0;
  return {r * (is_left ? -along : along), r * (is_below ? -across : across)};
}

/// Uniform in [0, 1) with `Digits` binary digits, which the type must be able to hold.
template <int Digits>
static inline float unit_float(Word word) {
  return static_cast<float>(word >> (32 - Digits)) * (1.0f / static_cast<float>(Word(1) << Digits));
}
static inline double unit_double(WideWord word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

/// [0, 1) to [low, high): rounding must not reach `high`; `last` is the largest number below it.
/// Where high - low would overflow, halves are computed with and doubled, which is exact.
template <class Real>
static inline Real stretched(Real unit, Real low, Real high, Real last) {
  const Real width = high - low;
  const bool is_wide = !(width - width == Real(0));
  const Real scale = is_wide ? Real(0.5) : Real(1);
  const Real part = exact::multiply_add(unit, high * scale - low * scale, low * scale);
  const Real value = is_wide ? part + part : part;
  const Real above = low < value ? value : low;
  return above < last ? above : last;
}

/// Uniform integer in [0, range) as the high half of a 128-bit product (Lemire, ACM Trans. Model.
/// Comput. Simul. 29, 2019, without the rejection); range 0 stands for 2^64.
static inline WideWord below(WideWord word, WideWord range) {
  const WideWord word_low = word & 0xffffffffu, word_high = word >> 32;
  const WideWord range_low = range & 0xffffffffu, range_high = range >> 32;
  const WideWord low = word_low * range_low;
  const WideWord middle = word_high * range_low + (low >> 32);
  const WideWord other = word_low * range_high + (middle & 0xffffffffu);
  const WideWord high = word_high * range_high + (middle >> 32) + (other >> 32);
  return range == 0 ? word : high;
}

}  // namespace cuop::jit
