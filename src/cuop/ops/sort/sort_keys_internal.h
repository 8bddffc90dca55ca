// Numbers as unsigned keys of the same order.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuop/core/dtype.h"
#include "cuop/core/half.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::kernels {

template <class T>
using KeyOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
inline constexpr bool is_floating_number = std::is_floating_point_v<T> || jit::is_narrow_type<T>;

template <class T>
inline constexpr jit::NumberKind kKindOf = is_floating_number<T> ? jit::NumberKind::kFloating
                                           : std::is_signed_v<T> ? jit::NumberKind::kSigned
                                                                 : jit::NumberKind::kUnsigned;
/// The bits of +inf; 0 for integers.
template <class T>
constexpr KeyOf<T> infinity_bits() {
  if constexpr (!is_floating_number<T>) {
    return 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<KeyOf<T>>(std::numeric_limits<T>::infinity());
  } else {
    return T(std::numeric_limits<float>::infinity()).bits;
  }
}

template <bool IsMerging, class T>
KeyOf<T> encode(T value) {
  return jit::encode_key<kKindOf<T>, IsMerging>(std::bit_cast<KeyOf<T>>(value), infinity_bits<T>());
}
template <class T>
T decode(KeyOf<T> key) {
  return std::bit_cast<T>(jit::decode_key<kKindOf<T>>(key));
}

}  // namespace cuop::kernels
