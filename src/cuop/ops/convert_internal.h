// One element from one type to another, as NumPy's astype does.
#pragma once

#include <complex>
#include <type_traits>

#include "cuop/core/scalar.h"
#include "cuop/core/to_integer.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/jit/parameter.h"

namespace cuop {

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

/// Whether tensors of one type become the other's: complex ones do not become real, which would
/// drop the imaginary parts.
template <class To, class From>
inline constexpr bool is_convertible =
    is_complex_type<To> || !is_complex_type<From> || std::is_same_v<To, bool>;

/// Integers keep their low bits, floats become integers as to_integer says (no value is an
/// error), complex numbers their real part where the caller knows that there is no other. Anything
/// to bool is `!= 0`.
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
  } else if constexpr (jit::is_narrow_type<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (jit::is_narrow_type<To>) {
    return jit::narrowed<To>(value);
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

/// A host number as an element. The caller has checked that it fits; DTypeError when a complex
/// number meets a real dtype all the same.
template <class T>
T convert_scalar(const Scalar& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return convert<T>(value.to_complex());
  } else if constexpr (is_complex_type<T>) {
    if (value.is_complex()) return convert<T>(value.to_complex());
    return T(jit::rounded_number<typename T::value_type>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value.to_bits64());
  } else {
    return jit::rounded_number<T>(value);
  }
}

}  // namespace cuop
