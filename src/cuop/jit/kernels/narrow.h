// Wider numbers as 16-bit floats, rounded once: to the nearest, ties to even. By way of float32 a
// number just beside the middle between two neighbours would first become that middle.
#pragma once

#include "cuop/jit/kernels/prelude.h"

#ifndef __CUDACC_RTC__
#include "cuop/core/half.h"
#endif

namespace cuop::jit {

#ifndef __CUDACC_RTC__
using cuop::BFloat16;
using cuop::Half;

template <class Narrow>
CUOP_FN Narrow narrowed(float value) {
  return Narrow(value);
}
#endif

template <class T>
inline constexpr bool is_narrow_type = false;
template <>
inline constexpr bool is_narrow_type<Half> = true;
template <>
inline constexpr bool is_narrow_type<BFloat16> = true;

namespace detail {
template <class Stored, bool IsNarrow>
struct ComputedOf {
  using type = Stored;
};
template <class Stored>
struct ComputedOf<Stored, true> {
  using type = float;
};
}  // namespace detail
/// The type in which elements of that type are computed.
template <class Stored>
using Computed = typename detail::ComputedOf<Stored, is_narrow_type<Stored>>::type;

namespace detail {

/// `bits` without the last ones, of which those in `below` (2^n - 1) are; what is left ends in a
/// one where any of them was. A number that keeps two digits more than it is rounded to becomes
/// what the whole number would; negative integers in two's complement do as well.
template <class Bits>
CUOP_FN Bits cut_to_odd(Bits bits, Bits below) {
  return (bits | ((bits & below) + below)) & ~below;
}

/// A float that rounds to 16 bits as the number does. Of a double 13 digits are left, two more than
/// float16 has; float32 has room for them wherever bfloat16 has other numbers than 0.
CUOP_FN float float_rounding_as(double x) {
  const uint64_t bits = __builtin_bit_cast(uint64_t, x);
  const uint64_t left = cut_to_odd(bits, (uint64_t{1} << 40) - 1);
  return static_cast<float>(__builtin_bit_cast(double, left));
}

/// The halves of an integer of 64 bits, from which doubles are made beside 2^84 and 2^52: few
/// processors have an instruction that converts vectors of such integers.
template <class T>
CUOP_FN double high_half(T value) {
  constexpr bool kSigned = is_signed_type<T>;
  constexpr uint64_t kBits = 0x4530000000000000u | (kSigned ? 0x80000000u : 0u);
  const uint64_t bits = (static_cast<uint64_t>(value) >> 32) ^ kBits;
  return __builtin_bit_cast(double, bits) - (0x1p84 + (kSigned ? 0x1p63 : 0.0));
}
template <class T>
CUOP_FN uint64_t low_half(T value) {
  return static_cast<uint64_t>(value) & 0xffffffffu;
}
CUOP_FN double joined(double high, uint64_t low) {
  return high + (__builtin_bit_cast(double, low | 0x4330000000000000u) - 0x1p52);
}

/// An integer of 64 bits as a double, shorter by 12 bits where a double has no room for all of
/// them.
template <class T>
CUOP_FN double shortened(T value) {
  const double high = high_half(value);
  const uint64_t below = math::abs(high) < 0x1p53 ? 0u : 0xfffu;
  return joined(high, cut_to_odd(low_half(value), below));
}

template <class T>
CUOP_FN float float_rounding_as(T value) {
  if constexpr (sizeof(T) < 4) {
    return static_cast<float>(value);
  } else if constexpr (sizeof(T) == 8) {
    return float_rounding_as(shortened(value));
  } else {
    const auto bits = static_cast<uint32_t>(value);
    const uint32_t magnitude = value < T(0) ? ~bits : bits;
    return static_cast<float>(static_cast<T>(cut_to_odd(bits, magnitude >> 24 != 0 ? 0xffu : 0u)));
  }
}

}  // namespace detail

template <class Narrow, class T>
CUOP_FN Narrow narrowed(T value) {
  return narrowed<Narrow>(detail::float_rounding_as(value));
}

}  // namespace cuop::jit
