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

/// Significant bits, and the smallest number that has all of them.
template <class Narrow>
struct NarrowFormat;
template <>
struct NarrowFormat<Half> {
  static constexpr int kDigits = 11;
  static constexpr double kSmallest = 0x1p-14;
};
template <>
struct NarrowFormat<BFloat16> {
  static constexpr int kDigits = 8;
  static constexpr double kSmallest = 0x1p-126;
};

/// x where the format has a number, but for what overflows, which stays too large. A double so
/// large that its last digit is worth the format's last digit at x is added and taken away again;
/// 1.5 times a power of two, so that the sum has that digit for either sign.
template <class Narrow>
CUOP_FN double rounded_to(double x) {
  constexpr double kLargest = 0x1p200;  // beyond all formats; what is added stays finite
  constexpr double kSmallest = NarrowFormat<Narrow>::kSmallest;
  constexpr double kShift =
      1.5 * static_cast<double>(uint64_t{1} << (53 - NarrowFormat<Narrow>::kDigits));
  const double power =
      __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, x) & 0x7ff0000000000000u);
  const double at_least = power < kSmallest ? kSmallest : power;
  const double shift = (at_least > kLargest ? kLargest : at_least) * kShift;
  return math::copysign((x + shift) - shift, x);
}

/// A double that rounds to fewer digits as the integer does: what a double has no room for leaves
/// a one behind.
template <class T>
CUOP_FN double shortened(T value) {
  constexpr T kWhole = T(1) << 53, kCut = 0xfff;
  const bool is_whole = value < kWhole && (!is_signed_type<T> || value > T(0) - kWhole);
  const T odd = static_cast<T>((value & ~kCut) | ((value & kCut) != 0 ? T(0x800) : T(0)));
  return static_cast<double>(is_whole ? value : odd);
}

}  // namespace detail

template <class Narrow>
CUOP_FN Narrow narrowed(double value) {
  return narrowed<Narrow>(static_cast<float>(detail::rounded_to<Narrow>(value)));
}
template <class Narrow>
CUOP_FN Narrow narrowed(int32_t value) {
  return narrowed<Narrow>(static_cast<double>(value));
}
template <class Narrow>
CUOP_FN Narrow narrowed(uint32_t value) {
  return narrowed<Narrow>(static_cast<double>(value));
}
template <class Narrow>
CUOP_FN Narrow narrowed(int64_t value) {
  return narrowed<Narrow>(detail::shortened(value));
}
template <class Narrow>
CUOP_FN Narrow narrowed(uint64_t value) {
  return narrowed<Narrow>(detail::shortened(value));
}

}  // namespace cuop::jit
