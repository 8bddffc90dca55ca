// cbrt from a third of the bits: of float where there are fused operations, of double everywhere.
// The reciprocal of the square root from half of them.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Of 0 or a number from 2^-100. A third of the bits as a whole number is nearly the exponent and
/// mantissa of the root: x^(-1/3) within 3.5 percent, then to 2^-14 by the series of e in
/// (1 - e)^(-1/3), and the root by one step of Newton's with the cube's rounding errors. Below 0.8
/// ulp and monotone, tried on all such arguments.
CUOP_FN Stage<float, 1> fused_cbrt_inverse(float x) {
  constexpr float kUnit = 256, kFirst = 0x1p23f + 5546484;  // with the least largest |e|, 0.102
  const float size = math::abs(x);
  const float bits = static_cast<float>(static_cast<int32_t>(bits_of(size)));
  const float thirds = math::fma(bits, -1 / (3 * kUnit), kFirst);
  const float first = from_bits<float>(bits_of(thirds) << 8);
  const float e = math::fma(-(size * first), first * first, 1.0f);
  return {{math::fma(first * e, polynomial(Fused<float>::kCbrt, e), first)}};
}
CUOP_FN float fused_cbrt(float x, Stage<float, 1> stage) {
  const float size = math::abs(x), inverse = stage.values[0];
  const float factor = inverse * inverse, root = size * factor;
  const float square = root * root, square_low = math::fma(root, root, -square);
  const float rest = math::fma(-square_low, root, math::fma(-square, root, size));
  return math::copysign(math::fma(rest, factor * (1.0f / 3), root), x);
}
/// Of 0 or a number from 2^-900, nearly the same way: a third of the upper half of the bits, a
/// second step to 2^-30, and the root from its upper 26 bits. Below 0.51 ulp, tried on millions.
CUOP_FN Stage<double, 1> quick_cbrt_inverse(double x) {
  constexpr double kTwoToMantissa = 0x1p52;
  constexpr double kFirst = 1430186347;
  const double size = math::abs(x);
  const double upper =
      from_bits<double>(bits_of(size) >> 32 | bits_of(kTwoToMantissa)) - kTwoToMantissa;
  const double thirds = multiply_add(upper, -1.0 / 3, Format<double>::kWhole + kFirst);
  const double first = from_bits<double>(bits_of(thirds) << 32);
  const double e = multiply_add(-(size * first), first * first, 1.0);
  return {{multiply_add(first * e, polynomial(Fused<double>::kCbrt, e), first)}};
}
CUOP_FN double quick_cbrt(double x, Stage<double, 1> stage) {
  const double size = math::abs(x), second = stage.values[0];
  const double error = multiply_add(-(size * second), second * second, 1.0);
  const double inverse = multiply_add(second * error, 1.0 / 3, second);
  const double factor = inverse * inverse, root = upper_half(size * factor), square = root * root;
  double rest;  // size - root^3
  if constexpr (math::has_fast_fma) {
    rest = math::fma(-square, root, size);
  } else {
    const double head = upper_half(square);
    rest = (size - head * root) - (square - head) * root;
  }
  const double step = rest * (factor * (1.0 / 3));
  return math::copysign(root + multiply_add(step * step, inverse, step), x);
}
/// Of all but these. Below, the rest of the subtraction would lose digits.
template <class T>
CUOP_FN Doubt<T> doubt_of_cbrt(T x) {
  constexpr T kLeast = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-900);
  const BitsOf<T> size = bits_of(math::abs(x)), less = size - 1;  // of 0 with its first bit
  return ((less - bits_of(kLeast)) & ~less) | (bits_of(Format<T>::kMost) - size);
}

/// Half of the bits give x^(-1/2) within 3.5 percent, a polynomial in e = 1 - x y^2 to 2^-15, and
/// one step of second order, with what x y loses, the rest. Below 0.52 ulp and monotone, tried on
/// all arguments of which doubt_of_rsqrt is sure: without a root and a quotient, which take longer.
CUOP_FN float fused_rsqrt(float x) {
  constexpr uint32_t kFirst = 0x5f374800;  // with the least largest |e|, 0.0682
  const float first = from_bits<float>(kFirst - (bits_of(x) >> 1));
  const float e = math::fma(-(x * first), first, 1.0f);
  const float y = math::fma(first * e, polynomial(Fused<float>::kRsqrt, e), first);
  const float h = x * y, h_low = math::fma(x, y, -h);
  const float rest = math::fma(-h_low, y, math::fma(-h, y, 1.0f));
  return math::fma(0.5f * y, rest, y);
}

}  // namespace cuop::jit::accurate
