// The axes of an iteration over several tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuop/core/layout.h"

namespace cuop::jit {

struct Axis {
  int64_t size = 1;
  std::vector<int64_t> strides;  ///< of each tensor along it, in elements
};

inline int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/// The axes of `shape` from `begin` to `end`, without those of one element. Layouts with fewer axes
/// do not go along the others.
std::vector<Axis> axes_of(const Shape& shape, std::span<const Layout> layouts, int begin, int end);

/// The axes with the longest stride of tensor `guide` first, merged where every tensor goes on from
/// one to the next without a gap.
std::vector<Axis> merged(std::vector<Axis> axes, size_t guide);

}  // namespace cuop::jit
