// Integers whose sums and products wrap, as NumPy's do.
#pragma once

#include <type_traits>

#include "cuop/core/dtype.h"

namespace cuop {

/// The type in which loops read integers of type T: unsigned, where overflow is defined and gives
/// the bits of the signed result. Other types are read as they are.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, TypeTag<T>>::type;

}  // namespace cuop
