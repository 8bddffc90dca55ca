#include "cuop/jit/cpu/arrangement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "cuop/core/box.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/axes.h"

namespace cuop::jit {

namespace {

/// Fewer are computed before another order is found; fewer stay in the first-level cache.
constexpr int64_t kFewest = 2048, kFewestInPlanes = 16384;
constexpr int64_t kCacheLine = 64;
/// Planes after each other along the rows: their columns lie on the same pages of memory.
constexpr int64_t kDown = 4;

bool is_in_order(const Layout& layout) {
  int64_t inner = 0;
  for (int axis = layout.ndim() - 1; axis >= 0; --axis) {
    const int64_t stride = magnitude(layout.strides[axis]);
    if (layout.shape[axis] == 1 || stride == 0) continue;
    if (stride < inner) return false;
    inner = stride;
  }
  return true;
}

/// Planes of `rows` along `axis` and `columns` along the last one, `down` of them before the next
/// columns.
struct Planes {
  size_t axis = 0;
  int64_t rows = 0, columns = 0, down = 1;
};

/// The axis along which tensor k has its neighbours: that of its shortest steps.
size_t nearest_axis(const std::vector<Axis>& axes, size_t k) {
  const auto step = [k](const Axis& axis) { return magnitude(axis.strides[k]); };
  const auto is_nearer = [&](const Axis& a, const Axis& b) {
    return step(a) != 0 && (step(b) == 0 || step(a) < step(b));
  };
  return static_cast<size_t>(std::min_element(axes.begin(), axes.end(), is_nearer) - axes.begin());
}

/// What a walk along the last axis needs of the processor for tensors that take but an element of
/// each cache line, most of which come back for the next one.
struct Needs {
  int64_t pages = 0;
  int across = 0;                  ///< tensors that come back
  bool are_lines_dropped = false;  ///< out of the second-level cache, before they are used up

  void add(int64_t lines, int64_t step) {
    constexpr int64_t kSets = 1024, kWays = 8, kPage = 4096;
    const int64_t sets = std::min(kSets, kSets * kCacheLine / std::gcd(step, kSets * kCacheLine));
    are_lines_dropped = are_lines_dropped || lines > sets * kWays / 2;
    pages += lines * std::min(step, kPage) / kPage;
  }
  /// Of pages, those that stay in the processor's table.
  bool are_too_many() const { return are_lines_dropped || pages > 1536; }
};

bool lies_across(const std::vector<Axis>& axes, size_t k) {
  return axes.back().strides[k] != 0 && nearest_axis(axes, k) + 1 != axes.size();
}

Needs needs_of(const std::vector<Axis>& axes, const std::vector<Tensor>& tensors) {
  const Axis& last = axes.back();
  Needs needs;
  for (size_t k = 0; k < tensors.size(); ++k) {
    const int64_t step = magnitude(last.strides[k]) * itemsize(tensors[k].dtype());
    if (step >= kCacheLine) needs.add(last.size, step);
    if (lies_across(axes, k)) ++needs.across;
  }
  return needs;
}

/// Those for the first tensor that lies across the last axis, where they fit.
std::optional<Planes> planes_of(const std::vector<Axis>& axes, size_t tensors, int64_t plane_bytes,
                                int64_t widest) {
  int64_t elements = 1;
  for (const Axis& axis : axes) elements *= axis.size;
  if (elements < kFewestInPlanes || axes.size() + 3 > size_t{kMaxDims}) return {};
  const int64_t width = axes.back().size, rows = kCacheLine / widest;
  int64_t columns = plane_bytes / kCacheLine;
  while (columns > width && columns > 32) columns /= 2;
  for (size_t k = 0; k < tensors; ++k) {
    const size_t axis = nearest_axis(axes, k);
    const bool do_fit = axes[axis].size >= rows * kDown && width >= columns;
    if (do_fit && lies_across(axes, k)) return Planes{axis, rows, columns};
  }
  return {};
}

/// A way through all elements, in planes where the lines of rows would be too many.
struct Order {
  std::vector<Axis> axes;
  Needs needs;
  std::optional<Planes> planes;

  bool operator<(const Order& other) const {
    const auto cost = [](const Order& order) {
      return std::tuple(order.needs.are_too_many() && !order.planes, order.needs.across);
    };
    return cost(*this) < cost(other);
  }
};

/// The best of those in which one of the tensors lies that have an element for each of the
/// iteration; of several the last one's, as outputs come behind leaves.
Order best_order(const std::vector<Axis>& axes, const std::vector<Tensor>& tensors,
                 int64_t plane_bytes, int64_t widest) {
  const auto order_by = [&](size_t guide) {
    Order order{merged(axes, guide), {}, {}};
    order.needs = needs_of(order.axes, tensors);
    if (order.needs.are_too_many()) {
      order.planes = planes_of(order.axes, tensors.size(), plane_bytes, widest);
    }
    return order;
  };
  Order best = order_by(tensors.size() - 1);
  for (size_t k = tensors.size() - 1; k-- > 0;) {
    const auto is_repeated = [k](const Axis& axis) { return axis.strides[k] == 0; };
    if (std::any_of(axes.begin(), axes.end(), is_repeated)) continue;
    Order other = order_by(k);
    if (other < best) best = std::move(other);
  }
  return best;
}

/// What is taken of one axis.
struct Cut {
  size_t axis;
  Interval range;
};

Part part_of(const Bindings& whole, const std::vector<Tensor>& tensors, std::vector<Axis> axes,
             const std::vector<Cut>& cuts, const std::optional<Planes>& planes) {
  std::vector<int64_t> offsets;
  for (const Tensor& tensor : tensors) offsets.push_back(tensor.layout().offset);
  for (const Cut& cut : cuts) {
    axes[cut.axis].size = cut.range.length();
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] += cut.range.low * axes[cut.axis].strides[k];
    }
  }
  if (planes) {
    const Axis down = axes[planes->axis], across = axes.back();
    axes.erase(axes.end() - 1);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(planes->axis));
    const auto add = [&](const Axis& axis, int64_t size, int64_t step) {
      axes.push_back({size, axis.strides});
      for (int64_t& stride : axes.back().strides) stride *= step;
    };
    const int64_t strip = planes->rows * planes->down;
    add(down, down.size / strip, strip);
    add(across, across.size / planes->columns, planes->columns);
    add(down, planes->down, planes->rows);
    add(down, planes->rows, 1);
    add(across, planes->columns, 1);
  }
  std::vector<Tensor> seen;
  for (size_t k = 0; k < tensors.size(); ++k) {
    Layout layout;
    layout.offset = offsets[k];
    for (const Axis& axis : axes) {
      layout.shape.push_back(axis.size);
      layout.strides.push_back(axis.strides[k]);
    }
    seen.push_back(tensors[k].with_layout(layout));
  }
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(axis.size);
  return {whole, shape, std::move(seen), planes.has_value()};
}

}  // namespace

Part::Part(const Bindings& whole, const Shape& shape, std::vector<Tensor> tensors,
           bool is_in_planes)
    : parameters_(whole.parameters),
      leaves_(whole.leaves.size()),
      shape_(shape),
      tensors_(std::move(tensors)),
      is_in_planes_(is_in_planes) {
  for (const Tensor& tensor : tensors_) pointers_.push_back(&tensor);
}

Bindings Part::bindings() const {
  const std::span<const Tensor* const> all(pointers_);
  return {shape_, 0, all.first(leaves_), parameters_, all.subspan(leaves_)};
}

std::optional<Part> as_one_line(const Bindings& bindings) {
  const Layout& layout = bindings.outputs[0]->layout();
  if (!(layout.shape == bindings.shape) || layout.is_contiguous()) return {};
  const Extent touched = extent(layout);  // an output's, no two elements of which share one
  if (touched.begin != layout.offset || touched.end - touched.begin != layout.size()) return {};
  std::vector<Tensor> lines;
  for (const auto& group : {bindings.leaves, bindings.outputs}) {
    for (const Tensor* tensor : group) {
      const auto& [shape, strides, offset] = tensor->layout();
      if (!(shape == layout.shape && strides == layout.strides)) return {};
      lines.push_back(tensor->with_layout({{layout.size()}, {1}, offset}));
    }
  }
  return Part(bindings, {layout.size()}, std::move(lines), false);
}

bool is_worth_arranging(const Bindings& bindings) {
  const auto lies_otherwise = [](const Tensor* tensor) { return !is_in_order(tensor->layout()); };
  const auto& [leaves, outputs] = std::tie(bindings.leaves, bindings.outputs);
  if (lies_otherwise(outputs[0])) return element_count(bindings.shape) >= kFewest;
  return (std::any_of(leaves.begin(), leaves.end(), lies_otherwise) ||
          std::any_of(outputs.begin(), outputs.end(), lies_otherwise)) &&
         element_count(bindings.shape) >= kFewestInPlanes;
}

std::vector<Part> arranged(const Bindings& bindings, int64_t plane_bytes, int64_t widest) {
  std::vector<Tensor> tensors;
  std::vector<Layout> layouts;
  for (const auto& group : {bindings.leaves, bindings.outputs}) {
    for (const Tensor* tensor : group) {
      tensors.push_back(*tensor);
      layouts.push_back(broadcast_to(tensor->layout(), bindings.shape, "elementwise"));
    }
  }
  const auto [axes, needs, planes] = best_order(
      axes_of(bindings.shape, layouts, 0, bindings.shape.ndim()), tensors, plane_bytes, widest);
  std::vector<Part> parts;
  if (!planes) {
    parts.push_back(part_of(bindings, tensors, axes, {}, {}));
    return parts;
  }
  const int64_t height = axes[planes->axis].size, width = axes.back().size;
  const int64_t rows = round_down(height, planes->rows),
                columns = round_down(width, planes->columns);
  const int64_t strips = round_down(height, planes->rows * kDown);
  const auto add = [&](Interval down, Interval across, const std::optional<Planes>& in) {
    if (down.length() == 0 || across.length() == 0) return;
    parts.push_back(
        part_of(bindings, tensors, axes, {{planes->axis, down}, {axes.size() - 1, across}}, in));
  };
  Planes strip = *planes;
  strip.down = kDown;
  add({0, strips}, {0, columns}, strip);
  add({strips, rows}, {0, columns}, planes);
  add({0, rows}, {columns, width}, {});
  add({rows, height}, {0, width}, {});
  return parts;
}

}  // namespace cuop::jit
