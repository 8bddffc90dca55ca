// cbrt of floats where there are fused operations.
#pragma once

#include "cuop/jit/kernels/accurate/parts.h"

namespace cuop::jit::accurate {

/// Of 0 or a number from 2^-100. A third of the bits as a whole number is nearly the exponent and
/// mantissa of the root: x^(-1/3) within 3.5 percent, then to 2^-16 by the series of e in
/// (1 - e)^(-1/3), and the root from its upper 12 bits, whose cube is subtracted without a rounding
/// error. Below 0.53 ulp and monotone, tried on all such
/// arguments.
CUOP_FN float fused_cbrt(float x) {
  constexpr int32_t kFirst = 1419900000;  // with the least largest |e|, 0.102
  const float size = math::abs(x);
  const auto thirds =
      static_cast<int32_t>(static_cast<float>(static_cast<int32_t>(bits_of(size))) * (-1.0f / 3));
  const float first = from_bits<float>(static_cast<uint32_t>(thirds + kFirst));
  const float e = math::fma(-(size * first), first * first, 1.0f);
  const float inverse = math::fma(first * e, polynomial(Fused<float>::kCbrt, e), first);
  const float square = inverse * inverse, root = upper_half(size * square);
  const float step = math::fma(-(root * root), root, size) * (square * (1.0f / 3));
  return math::copysign(root + math::fma(step * step, inverse, step), x);
}
/// Whether x is none of these. Below, the rest of the subtraction would lose digits.
CUOP_FN bool is_beyond_cbrt(float x) {
  const float size = math::abs(x);
  return (!(size >= 0x1p-100f) & (x != 0)) | !(size < float(math::infinity));
}

}  // namespace cuop::jit::accurate
