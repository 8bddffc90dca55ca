// Elements of any type as the numbers in which stand-ins for libraries compute.
#pragma once

#include <complex>
#include <type_traits>

#include "cuop/core/half.h"

namespace cuop::simulator {

using Wide = std::complex<double>;

template <class T>
Wide widened(T value) {
  if constexpr (std::is_constructible_v<Wide, T>) {
    return Wide(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

/// Of real types the real part; 16 bits by way of 32.
template <class T>
T narrowed(Wide value) {
  if constexpr (std::is_constructible_v<T, Wide>) {
    return T(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value.real();
  } else {
    return T(static_cast<float>(value.real()));
  }
}

}  // namespace cuop::simulator
