// One element from one type to another, as NumPy's astype does.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "cuop/core/scalar.h"

namespace cuop {

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

/// Float to integer truncates; NaN and values out of range become 0 or wrap modulo 2^64 and are not
/// errors. Complex to real drops the imaginary part. Anything to bool is `!= 0`.
template <class To, class From>
inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      using Part = typename To::value_type;
      return To(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return value.real() != 0 || value.imag() != 0;
    } else {
      return convert<To>(value.real());
    }
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (value >= From(-0x1p63) && value < From(0x1p63)) {
      return static_cast<To>(static_cast<int64_t>(value));
    }
    if (value >= From(0x1p63) && value < From(0x1p64)) {
      return static_cast<To>(static_cast<uint64_t>(value));
    }
    return static_cast<To>(std::numeric_limits<int64_t>::min());  // what x86 and NumPy answer
  } else {
    return static_cast<To>(value);
  }
}

/// A host number as an element; ExecutionError when a complex number meets a real dtype.
template <class T>
T convert_scalar(const Scalar& value) {
  if constexpr (is_complex_type<T>) {
    return convert<T>(value.to_complex());
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<T>(value.to_int64());
  } else {
    return convert<T>(value.to_double());
  }
}

}  // namespace cuop
