// Arithmetic of loops that serve integers, floats and complex numbers alike.
#pragma once

#include <complex>
#include <type_traits>

#include "cuop/core/dtype.h"

namespace cuop {

/// The type in which loops read integers of type T: unsigned, where overflow is defined and gives
/// the bits of the signed result, as NumPy's does. Other types are read as they are.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, TypeTag<T>>::type;

// Inlined always: files compiled for other instruction sets include this too, and the linker would
// keep only one of the copies.

template <class T>
[[gnu::always_inline]] inline T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Small types would be promoted to a signed int that overflows.
    using Wide = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    return static_cast<T>(Wide(a) * Wide(b));
  } else {
    return a * b;
  }
}

/// Spelled out: the library's product checks for infinities one by one.
template <class R>
[[gnu::always_inline]] inline std::complex<R> times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace cuop
