// Internal: bringing strided elements of any dtype into a contiguous block of the type that a fold
// takes.
#pragma once

#include <cstdint>

#include "cuop/core/dtype.h"

namespace cuop {

enum class LoadMap : uint8_t {
  kValue,      ///< the element itself
  kMagnitude,  ///< |x| as float64
  kNonzero,    ///< x != 0 as uint8
};

/// n elements from `source`, `stride` elements apart, to `destination`.
using LoadFunction = void (*)(const void* source, int64_t stride, void* destination, int64_t n);

/// Null when no such load exists (a load never loses information, but for int64 to float64).
LoadFunction load_cpu(LoadMap map, DType source, DType element);

template <class Level>
LoadFunction load_function(LoadMap map, DType source, DType element);

}  // namespace cuop
