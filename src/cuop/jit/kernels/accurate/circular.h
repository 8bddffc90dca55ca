// sin, cos and tan.
//
// Arguments are reduced by pi in three parts (W. J. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980) up to kMostCircular; larger ones are left to the caller.
// Numbers of type float are computed in double, which costs less than parts of float would.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Arguments up to this size are reduced here.
inline constexpr double kMostCircular = 0x1p20;

/// x - h unit, where h is a multiple of 1/2 up to 2^20 and the result is smaller than unit.
template <class Unit>
CUOP_FN Sum<double> reduced(double x, double h) {
  if constexpr (math::has_fast_fma) {
    const double first = math::fma(-h, Unit::kA, x);
    const Sum<double> p = two_product(h, Unit::kB);
    const Sum<double> r = two_sum(first, -p.high);
    return quick_sum(r.high, math::fma(-h, Unit::kC, r.low - p.low));
  } else {
    const double first = x - h * Unit::kShort1;
    // Where the second term is the larger one their difference needs no rounding.
    const Sum<double> second = quick_sum(first, -(h * Unit::kShort2));
    const Sum<double> third = two_sum(second.high, -(h * Unit::kShort3));
    return quick_sum(third.high, (second.low + third.low) - h * Unit::kShort4);
  }
}

/// The nearest whole number, and itself in the last bits.
struct Whole {
  double value;
  uint64_t bits;
};
CUOP_FN Whole nearest(double x) {
  const double shifted = x + Format<double>::kWhole;
  return {shifted - Format<double>::kWhole, bits_of(shifted)};
}

/// sin(r + quarters pi/2) for |r| <= pi/4.
CUOP_FN double sine_of(Sum<double> r, uint64_t quarters) {
  using C = Coefficients<double>;
  const double z = r.high * r.high, half = 0.5 * z, rest = 1 - half;
  const double sine = r.high + multiply_add(r.high * z, polynomial(C::kShortSine, z), r.low * rest);
  const double tail = multiply_add(z * z, polynomial(C::kCosine, z), -(r.high * r.low));
  const double cosine = rest + (((1 - rest) - half) + tail);
  const double y = exchanged(sine, cosine, quarters).first;
  return from_bits<double>(bits_of(y) ^ (quarters >> 1 << 63));
}
/// sin(r + turns pi) for |r| <= pi/2, to the digits of a float.
CUOP_FN float short_sine_of(double r, uint64_t turns) {
  const double z = r * r;
  const double y = multiply_add(r * z, polynomial(Coefficients<float>::kSine, z), r);
  return static_cast<float>(from_bits<double>(bits_of(y) ^ (turns << 63)));
}
/// x - h unit to the digits of a float.
template <class Unit>
CUOP_FN double short_reduced(double x, double h) {
  return multiply_add(h, -Unit::kShortRest, multiply_add(h, -Unit::kShort1, x));
}

CUOP_FN double sin(double x) {
  const Whole k = nearest(x * (2 * kInvPi));
  const double y = sine_of(reduced<HalfPi>(x, k.value), k.bits);
  return x == 0 ? x : y;
}
CUOP_FN float sin(float x) {
  const Whole k = nearest(x * kInvPi);
  const float y = short_sine_of(short_reduced<Pi>(x, k.value), k.bits);
  return x == 0 ? x : y;
}
CUOP_FN double cos(double x) {
  const Whole k = nearest(x * (2 * kInvPi));
  return sine_of(reduced<HalfPi>(x, k.value), k.bits + 1);
}
// |x| lies half a turn and r behind a whole number of turns.
CUOP_FN float cos(float x) {
  const double size = math::abs(x);
  const Whole k = nearest(multiply_add(size, kInvPi, -0.5));
  return short_sine_of(short_reduced<Pi>(size, k.value + 0.5), k.bits + 1);
}

/// tan(r + quarters pi/2) for |r| <= pi/4; in odd quarters it is -1/tan(r).
CUOP_FN double tangent_of(Sum<double> r, uint64_t quarters) {
  using C = Coefficients<double>;
  const Sum<double> square = two_product(r.high, r.high);
  const double z = square.high, cube = r.high * z;
  const Sum<double> p = quick_sum(C::kTangent[0], z * polynomial<1>(C::kTangent, z));
  const double lost = multiply_add(r.high * square.low, p.high, cube * p.low);
  const double low = lost + multiply_add(r.low, z, r.low);
  const double tail = multiply_add(cube, p.high, low);
  const Sum<double> t = quick_sum(r.high, tail);
  const auto [n, d] = exchanged(t.high, 1.0, quarters);
  const auto [n_low, d_low] = exchanged(t.low, 0.0, quarters);
  const Sum<double> q = quotient(Sum<double>{n, n_low}, Sum<double>{d, d_low});
  return from_bits<double>(bits_of(q.high + q.low) ^ quarters << 63);
}

CUOP_FN double tan(double x) {
  const Whole k = nearest(x * (2 * kInvPi));
  const double y = tangent_of(reduced<HalfPi>(x, k.value), k.bits);
  return x == 0 ? x : y;
}
CUOP_FN float tan(float x) {
  const Whole k = nearest(x * (2 * kInvPi));
  const double r = short_reduced<HalfPi>(x, k.value);
  const double z = r * r;
  const double t = multiply_add(r * z, polynomial(Coefficients<float>::kTangent, z), r);
  const auto [n, d] = exchanged(t, 1.0, k.bits);
  const double y = from_bits<double>(bits_of(n / d) ^ k.bits << 63);
  return x == 0 ? x : static_cast<float>(y);
}

}  // namespace cuop::jit::accurate
