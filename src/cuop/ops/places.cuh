// Places along a loop over axes, in several tensors at once: what kernels are given of it, and
// where a place is. Host and device read the same structs; strides are in elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// No tensor has more.
inline constexpr int kMaxPlaceAxes = 32;

/// Axes from the outermost to the innermost; only `offsets_at` does with none.
template <int Tensors>
struct Places {
  int axes;
  int64_t sizes[kMaxPlaceAxes];
  int64_t strides[Tensors][kMaxPlaceAxes];

  CUOP_FN int64_t innermost_size() const { return sizes[axes - 1]; }
  CUOP_FN int64_t innermost_stride(int tensor) const { return strides[tensor][axes - 1]; }
};

/// From each tensor's first element.
template <int Tensors>
struct PlaceOffsets {
  int64_t of[Tensors];
};

/// Of numbers of 32 bits, as most are, without the routine that divides longer ones.
CUOP_FN int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

template <int Tensors>
CUOP_FN PlaceOffsets<Tensors> offsets_at(const Places<Tensors>& places, int64_t index) {
  PlaceOffsets<Tensors> offsets{};
  CUOP_ROLLED
  for (int axis = places.axes - 1; axis >= 0; --axis) {
    const int64_t next = axis > 0 ? quotient(index, places.sizes[axis]) : 0;
    const int64_t at = index - next * places.sizes[axis];
    for (int k = 0; k < Tensors; ++k) offsets.of[k] += at * places.strides[k][axis];
    index = next;
  }
  return offsets;
}

/// Lines along one axis of two tensors of one shape.
struct LinePair {
  const void* x;
  void* out;
  Places<2> starts;  ///< of x and out
  int64_t count, length;
  int64_t x_step, out_step;
};

}  // namespace cuop::jit
