#include "cuop/core/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

/// Which of two axes lies within the other, as far as operands say.
enum class Nesting : uint8_t { kUnknown, kFirstOuter, kFirstInner };

/// The step of an operand along an axis of the shape that it is broadcast to; 0 says nothing.
int64_t step_along(const Layout& operand, const Shape& shape, int axis) {
  const int own = axis - (shape.ndim() - operand.ndim());
  return own < 0 || operand.shape[own] == 1 ? 0 : std::abs(operand.strides[own]);
}

Nesting nesting_of(const Shape& shape, std::span<const Layout* const> operands, int first,
                   int second) {
  Nesting found = Nesting::kUnknown;
  for (const Layout* operand : operands) {
    const int64_t of_first = step_along(*operand, shape, first);
    const int64_t of_second = step_along(*operand, shape, second);
    if (of_first == 0 || of_second == 0) continue;
    if (of_first >= of_second) return Nesting::kFirstOuter;
    found = Nesting::kFirstInner;
  }
  return found;
}

}  // namespace

bool Layout::is_contiguous() const {
  int64_t expected = 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return std::find(shape.begin(), shape.end(), 0) != shape.end();
    expected *= shape[i];
  }
  return true;
}

Layout contiguous_layout(const Shape& shape) {
  Layout layout{shape, Dims::filled(shape.ndim(), 0), 0};
  element_count(shape);  // refuses negative sizes and overflow
  int64_t stride = 1;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    layout.strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return layout;
}

Layout layout_of_result(const Shape& shape, std::span<const Layout* const> operands) {
  const auto is_in_rows = [&](const Layout* operand) {
    return operand->shape == shape && operand->is_contiguous();
  };
  if (shape.ndim() < 2 || std::any_of(operands.begin(), operands.end(), is_in_rows)) {
    return contiguous_layout(shape);
  }
  std::array<int, kMaxDims> axes{};  // the one of the longest strides first
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    int place = axis;
    for (int k = axis - 1; k >= 0; --k) {
      const Nesting nesting = nesting_of(shape, operands, axes[static_cast<size_t>(k)], axis);
      if (nesting == Nesting::kFirstOuter) break;
      if (nesting == Nesting::kFirstInner) place = k;
    }
    const auto begin = axes.begin();
    std::move_backward(begin + place, begin + axis, begin + axis + 1);
    axes[static_cast<size_t>(place)] = axis;
  }
  Shape stored;
  for (int k = 0; k < shape.ndim(); ++k) stored.push_back(shape[axes[static_cast<size_t>(k)]]);
  const Layout in_rows = contiguous_layout(stored);
  Layout layout{shape, Dims::filled(shape.ndim(), 0), 0};
  for (int k = 0; k < shape.ndim(); ++k) {
    layout.strides[axes[static_cast<size_t>(k)]] = in_rows.strides[k];
  }
  return layout;
}

Extent extent(const Layout& layout) {
  if (layout.size() == 0) return {};
  Extent result{layout.offset, layout.offset + 1};
  for (int i = 0; i < layout.ndim(); ++i) {
    const int64_t reach = (layout.shape[i] - 1) * layout.strides[i];
    (reach < 0 ? result.begin : result.end) += reach;
  }
  return result;
}

bool may_self_overlap(const Layout& layout) {
  if (layout.is_contiguous()) return false;
  std::vector<std::pair<int64_t, int64_t>> axes;  // |stride|, size
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.shape[i] == 0) return false;
    if (layout.shape[i] > 1) axes.emplace_back(std::abs(layout.strides[i]), layout.shape[i]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : axes) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

Layout permute(const Layout& layout, std::span<const int64_t> axes) {
  const int ndim = layout.ndim();
  if (static_cast<int>(axes.size()) != ndim) {
    throw ShapeError(
        cat("permute: ", axes.size(), " axes were given for a tensor of ", ndim, " dimensions"));
  }
  Layout result{Dims::filled(ndim, 0), Dims::filled(ndim, 0), layout.offset};
  std::vector<bool> seen(static_cast<size_t>(ndim), false);
  for (int i = 0; i < ndim; ++i) {
    const int axis = normalize_axis(axes[static_cast<size_t>(i)], ndim, "permute");
    if (seen[static_cast<size_t>(axis)]) {
      throw ShapeError(cat("permute: axis ", axis, " is given twice in (", join(axes), ")"));
    }
    seen[static_cast<size_t>(axis)] = true;
    result.shape[i] = layout.shape[axis];
    result.strides[i] = layout.strides[axis];
  }
  return result;
}

Dims memory_order(const Layout& layout) {
  Dims axes = Dims::filled(layout.ndim(), 0);
  std::iota(axes.begin(), axes.end(), 0);
  const auto distance = [&](int64_t axis) {
    const int64_t stride = std::abs(layout.strides[static_cast<int>(axis)]);
    return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
  };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](int64_t a, int64_t b) { return distance(a) > distance(b); });
  return axes;
}

Layout broadcast_to(const Layout& layout, const Shape& shape, const char* who) {
  const int added = shape.ndim() - layout.ndim();
  Layout result{shape, Dims::filled(shape.ndim(), 0), layout.offset};
  bool fits = added >= 0;
  for (int i = 0; fits && i < layout.ndim(); ++i) {
    if (layout.shape[i] == shape[i + added]) {
      result.strides[i + added] = layout.strides[i];
    } else {
      fits = layout.shape[i] == 1;
    }
  }
  if (!fits) {
    throw ShapeError(cat(who, ": shape ", layout.shape, " does not broadcast to ", shape));
  }
  element_count(shape);  // refuses what int64 cannot count
  return result;
}

std::optional<Layout> try_reshape(const Layout& layout, const Shape& shape) {
  if (layout.size() != element_count(shape)) return std::nullopt;
  Layout result = contiguous_layout(shape);
  result.offset = layout.offset;
  if (layout.is_contiguous()) return result;
  // Walk both shapes from the front, matching groups of axes with equal products; inside a group
  // the old axes must follow each other without a gap.
  int from = 0, to = 0;
  while (from < layout.ndim() && to < shape.ndim()) {
    int64_t old_count = layout.shape[from], new_count = shape[to];
    int old_end = from + 1, new_end = to + 1;
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= layout.shape[old_end++];
      } else {
        new_count *= shape[new_end++];
      }
    }
    int64_t inner_stride = 0, expected = 0;
    bool is_first = true;
    for (int i = old_end - 1; i >= from; --i) {
      if (layout.shape[i] == 1) continue;
      if (is_first) {
        inner_stride = layout.strides[i];
      } else if (layout.strides[i] != expected) {
        return std::nullopt;
      }
      is_first = false;
      expected = layout.strides[i] * layout.shape[i];
    }
    int64_t stride = inner_stride;
    for (int i = new_end - 1; i >= to; --i) {
      result.strides[i] = stride;
      stride *= shape[i];
    }
    from = old_end;
    to = new_end;
  }
  return result;
}

Layout slice(const Layout& layout, int axis, int64_t start, int64_t length, int64_t step) {
  Layout result = layout;
  result.shape[axis] = length;
  if (length > 1) result.strides[axis] *= step;  // else no step is taken, however long it is
  if (length > 0) result.offset += start * layout.strides[axis];
  return result;
}

Layout select(const Layout& layout, int axis, int64_t index) {
  Layout result = layout;
  result.offset += index * layout.strides[axis];
  return remove_axis(result, axis);
}

Layout insert_axis(const Layout& layout, int axis) {
  Layout result = layout;
  result.shape.insert(axis, 1);
  result.strides.insert(axis, 0);
  return result;
}

Layout remove_axis(const Layout& layout, int axis) {
  Layout result = layout;
  result.shape.erase(axis);
  result.strides.erase(axis);
  return result;
}

Shape infer_shape(const Shape& shape, int64_t count, const char* who) {
  Shape result = shape;
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (shape[i] < 0) {
      throw ShapeError(cat(who, ": shape ", shape, " may hold one -1 and no other negative size"));
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      throw ShapeError(cat(who, ": shape ", shape, " has more elements than 64 bits can count"));
    }
  }
  if (unknown >= 0 && known != 0 && count % known == 0) {
    result[unknown] = count / known;
    return result;
  }
  if (unknown >= 0 || known != count) {
    throw ShapeError(cat(who, ": ", count, " elements do not fill shape ", shape));
  }
  return result;
}

}  // namespace cuop
