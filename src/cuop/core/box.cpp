#include "cuop/core/box.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

Interval split_evenly(Interval whole, int64_t parts, int64_t index) {
  const int64_t base = whole.length() / parts;
  const int64_t longer = whole.length() % parts;
  const int64_t low = whole.low + index * base + std::min(index, longer);
  return {low, low + base + (index < longer ? 1 : 0)};
}

Interval clipped(Interval interval, int64_t length) {
  const int64_t low = std::clamp<int64_t>(interval.low, 0, length);
  return {low, std::clamp<int64_t>(interval.high, low, length)};
}

void Box::set_interval(int axis, Interval interval) {
  low[axis] = interval.low;
  high[axis] = interval.high;
}

Shape Box::shape() const {
  Shape result = Shape::filled(ndim(), 0);
  for (int axis = 0; axis < ndim(); ++axis) result[axis] = interval(axis).length();
  return result;
}

bool Box::empty() const {
  if (is_void) return true;
  for (int axis = 0; axis < ndim(); ++axis) {
    if (high[axis] <= low[axis]) return true;
  }
  return false;
}

bool Box::contains(const Box& other) const {
  return other.empty() || intersect(*this, other) == other;
}

Box whole_box(const Shape& shape) { return {Dims::filled(shape.ndim(), 0), shape}; }

Box empty_box(int ndim) { return {Dims::filled(ndim, 0), Dims::filled(ndim, 0), ndim == 0}; }

Box intersect(const Box& a, const Box& b) {
  if (!overlap(a, b)) return empty_box(a.is_void || b.is_void ? 0 : a.ndim());
  Box result = a;
  for (int axis = 0; axis < a.ndim(); ++axis) {
    result.low[axis] = std::max(a.low[axis], b.low[axis]);
    result.high[axis] = std::min(a.high[axis], b.high[axis]);
  }
  return result;
}

bool overlap(const Box& a, const Box& b) {
  const int ndim = a.ndim();
  if (ndim != b.ndim()) {
    throw ShapeError(cat("intersect: boxes ", a, " and ", b, " have different dimensions"));
  }
  if (a.is_void || b.is_void) return false;
  for (int axis = 0; axis < ndim; ++axis) {
    if (std::min(a.high[axis], b.high[axis]) <= std::max(a.low[axis], b.low[axis])) return false;
  }
  return true;
}

Box permute(const Box& box, const Dims& axes) {
  Box result = box;
  for (int i = 0; i < axes.ndim(); ++i) {
    result.set_interval(i, box.interval(static_cast<int>(axes[i])));
  }
  return result;
}

Layout slice(const Layout& layout, const Box& box, const Dims& origin) {
  Layout result = layout;
  for (int axis = 0; axis < box.ndim(); ++axis) {
    const Interval wanted = box.interval(axis);
    const int64_t first = origin.ndim() == 0 ? 0 : origin[axis];
    result = slice(result, axis, wanted.low - first, wanted.length(), 1);
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Box& box) {
  out << '[';
  for (int axis = 0; axis < box.ndim(); ++axis) {
    out << (axis > 0 ? ", " : "") << box.low[axis] << ':' << box.high[axis];
  }
  return out << ']';
}

}  // namespace cuop
