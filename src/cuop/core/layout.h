// How elements lie in storage: shape, strides and offset, all in elements. Views are layouts;
// making one never touches data.
#pragma once

#include <optional>
#include <span>

#include "cuop/core/dims.h"

namespace cuop {

struct Layout {
  Shape shape;
  Strides strides;
  int64_t offset = 0;

  int ndim() const { return shape.ndim(); }
  int64_t size() const { return element_count(shape); }
  /// Row-major without gaps (axes of size 1 and empty tensors do not count).
  bool is_contiguous() const;
  bool operator==(const Layout&) const = default;
};

/// Row-major layout from offset 0.
Layout contiguous_layout(const Shape& shape);
/// A layout of `shape` from offset 0 without gaps, its axes in the order in which those of the
/// operands lie, which are broadcast to it: NumPy's order "K". Two axes stand as in a row-major
/// layout where an operand has them so, or none has them the other way round.
Layout layout_of_result(const Shape& shape, std::span<const Layout* const> operands);
/// First and one-past-last element offsets that the layout touches ({0,0} when empty).
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};
Extent extent(const Layout& layout);
/// True when two index tuples may map to one element (a broadcast view, for example).
bool may_self_overlap(const Layout& layout);

Layout permute(const Layout& layout, std::span<const int64_t> axes);
/// The axes from that whose neighbours lie farthest apart to that whose lie nearest: elements in
/// their order follow memory. Axes without a stride of their own (broadcast) come first.
Dims memory_order(const Layout& layout);
/// Stretches axes of size 1 and adds leading axes (stride 0).
Layout broadcast_to(const Layout& layout, const Shape& shape, const char* who);
/// The same elements in row-major order under another shape, when strides allow it.
std::optional<Layout> try_reshape(const Layout& layout, const Shape& shape);
/// Elements start, start+step, ... (`length` of them) along `axis`; step may be negative.
Layout slice(const Layout& layout, int axis, int64_t start, int64_t length, int64_t step);
/// Removes `axis`, keeping only position `index`.
Layout select(const Layout& layout, int axis, int64_t index);
Layout insert_axis(const Layout& layout, int axis);
Layout remove_axis(const Layout& layout, int axis);

/// `shape` with at most one -1 replaced so that it holds `count` elements; ShapeError otherwise.
Shape infer_shape(const Shape& shape, int64_t count, const char* who);

}  // namespace cuop
