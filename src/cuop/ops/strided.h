// Walking two strided tensors of one shape together with as few, as long loops as their strides
// allow.
#pragma once

#include <array>
#include <cstdint>

#include "cuop/core/divide_up.h"
#include "cuop/core/layout.h"

namespace cuop {

/// A common loop nest over N operands: axes of size 1 dropped, axes that follow each other without
/// a gap in every operand merged, ordered so that the first operand's stride falls inwards.
template <size_t N>
struct LoopNest {
  struct Axis {
    int64_t size;
    std::array<int64_t, N> strides;
  };
  std::array<Axis, kMaxDims> axes;
  int count = 0;

  /// The innermost axis; a nest of a single element has one axis of size 1.
  const Axis& inner() const { return axes[static_cast<size_t>(count - 1)]; }
  int64_t outer_size() const {
    int64_t size = 1;
    for (int i = 0; i + 1 < count; ++i) size *= axes[static_cast<size_t>(i)].size;
    return size;
  }
  int64_t size() const { return outer_size() * inner().size; }
  /// Offsets (in elements) of every operand at the start of outer row `row`.
  std::array<int64_t, N> row_offsets(int64_t row) const {
    std::array<int64_t, N> offsets{};
    for (int i = count - 2; i >= 0; --i) {
      const Axis& axis = axes[static_cast<size_t>(i)];
      // The first axis takes what is left: most nests have two, and divisions are slow.
      const auto [rest, index] = i == 0 ? Divided{0, row} : divided(row, axis.size);
      row = rest;
      for (size_t k = 0; k < N; ++k) offsets[k] += index * axis.strides[k];
    }
    return offsets;
  }
  /// The same at element `index`, counted along the axes in their order.
  std::array<int64_t, N> offsets(int64_t index) const {
    const auto [row, place] = divided(index, inner().size);
    std::array<int64_t, N> result = row_offsets(row);
    for (size_t k = 0; k < N; ++k) result[k] += place * inner().strides[k];
    return result;
  }
};

template <size_t N>
LoopNest<N> make_loop_nest(const Shape& shape, const std::array<const Strides*, N>& strides) {
  LoopNest<N> nest;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == 1) continue;
    typename LoopNest<N>::Axis axis{shape[i], {}};
    for (size_t k = 0; k < N; ++k) axis.strides[k] = (*strides[k])[i];
    // Insertion by falling stride of the first operand keeps row-major order for row-major tensors.
    int position = nest.count++;
    const auto magnitude = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    while (position > 0) {
      const auto& before = nest.axes[static_cast<size_t>(position - 1)];
      if (magnitude(before.strides[0]) >= magnitude(axis.strides[0])) break;
      nest.axes[static_cast<size_t>(position)] = before;
      --position;
    }
    nest.axes[static_cast<size_t>(position)] = axis;
  }
  int kept = 0;
  for (int i = 0; i < nest.count; ++i) {
    const auto axis = nest.axes[static_cast<size_t>(i)];
    if (kept > 0) {
      auto& before = nest.axes[static_cast<size_t>(kept - 1)];
      bool follows = true;
      for (size_t k = 0; k < N; ++k) {
        follows = follows && before.strides[k] == axis.strides[k] * axis.size;
      }
      if (follows) {
        before = {before.size * axis.size, axis.strides};
        continue;
      }
    }
    nest.axes[static_cast<size_t>(kept++)] = axis;
  }
  if (kept == 0) nest.axes[static_cast<size_t>(kept++)] = {1, {}};
  nest.count = kept;
  return nest;
}

}  // namespace cuop
