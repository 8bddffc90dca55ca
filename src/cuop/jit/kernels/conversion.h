// Conversion between the types that kernels compute in, as NumPy's astype does it.
#pragma once

#include "cuop/core/to_integer.h"
#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

template <class To, class From>
CUOP_FN To convert(From value) {
  if constexpr (is_bool_type<To>) {
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
