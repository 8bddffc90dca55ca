// An axis-aligned box of indices: per dimension a half-open interval [low, high). Which rank holds
// what, which piece a message carries and where a halo lies are all boxes.
#pragma once

#include <cstdint>
#include <ostream>

#include "cuop/core/layout.h"

namespace cuop {

/// Indices low <= i < high, a plain value.
struct Interval {
  int64_t low = 0;
  int64_t high = 0;

  int64_t length() const { return high > low ? high - low : 0; }
  bool operator==(const Interval&) const = default;
};

/// Block `index` of `parts` nearly equal blocks of the interval; the first length % parts blocks
/// are one longer. More parts than indices leave the last ones empty.
Interval split_evenly(Interval whole, int64_t parts, int64_t index);

/// What of it lies in [0, length); empty, within it too, where that is nothing.
Interval clipped(Interval interval, int64_t length);

struct Box {
  Dims low;
  Dims high;
  /// Holds no index although it has no dimensions, whose box otherwise holds one.
  bool is_void = false;

  int ndim() const { return low.ndim(); }
  Interval interval(int axis) const { return {low[axis], high[axis]}; }
  void set_interval(int axis, Interval interval);
  /// Extent of each dimension, never negative.
  Shape shape() const;
  int64_t size() const { return is_void ? 0 : element_count(shape()); }
  /// True when it holds no index.
  bool empty() const;
  bool contains(const Box& other) const;
  bool operator==(const Box&) const = default;
};

/// [0, shape) in every dimension.
Box whole_box(const Shape& shape);
/// [0, 0) in every dimension; void when there is no dimension.
Box empty_box(int ndim);
/// The common indices; an empty box when there are none. Both must have the same dimensions.
Box intersect(const Box& a, const Box& b);
/// Whether there are any; makes no box.
bool overlap(const Box& a, const Box& b);

/// The box whose axis i is axis axes[i] of this one.
Box permute(const Box& box, const Dims& axes);
/// Where the elements of a box lie in memory, of a tensor whose first element has the indices
/// `origin` (0 in every dimension where none are given).
Layout slice(const Layout& layout, const Box& box, const Dims& origin = {});

/// As [0:3, 2:5].
std::ostream& operator<<(std::ostream& out, const Box& box);

}  // namespace cuop
