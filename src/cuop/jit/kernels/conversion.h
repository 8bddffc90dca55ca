// Conversion between the types that kernels compute in, as NumPy's astype does it.
#pragma once

#include "cuop/core/to_integer.h"
#include "cuop/jit/kernels/narrow.h"

namespace cuop::jit {

template <class To, class From>
CUOP_FN To convert(From value) {
  if constexpr (is_narrow_type<To> && is_narrow_type<From>) {
    return narrowed<To>(static_cast<float>(value));
  } else if constexpr (is_narrow_type<To>) {
    return narrowed<To>(value);
  } else if constexpr (is_bool_type<To>) {
    return truth(value);
  } else if constexpr (is_complex_type<To> && is_complex_type<From>) {
    using R = RealType<To>;
    return {static_cast<R>(value.real()), static_cast<R>(value.imag())};
  } else if constexpr (is_complex_type<To>) {
    return {static_cast<RealType<To>>(value), 0};
  } else if constexpr (is_float_type<From> && is_integer_type<To> && !__is_class(To)) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace cuop::jit
