#include "cuop/ops/index/view.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"

namespace cuop {

Tensor reshape(const Tensor& tensor, const Shape& shape) {
  const Shape full = infer_shape(shape, tensor.size(), "reshape");
  if (const auto layout = try_reshape(tensor.layout(), full)) return tensor.with_layout(*layout);
  return clone(tensor).with_layout(contiguous_layout(full));
}

Tensor view(const Tensor& tensor, const Shape& shape) {
  const Shape full = infer_shape(shape, tensor.size(), "view");
  const auto layout = try_reshape(tensor.layout(), full);
  if (!layout) {
    throw ShapeError(cat("view: a tensor of shape ", tensor.shape(), " with strides ",
                         tensor.strides(), " cannot be seen as ", full,
                         " without a copy; use reshape"));
  }
  return tensor.with_layout(*layout);
}

Tensor flatten(const Tensor& tensor, int64_t start_axis, int64_t end_axis) {
  if (tensor.ndim() == 0) return reshape(tensor, {1});
  const int first = normalize_axis(start_axis, tensor.ndim(), "flatten");
  const int last = normalize_axis(end_axis, tensor.ndim(), "flatten");
  if (first > last) {
    throw ShapeError(cat("flatten: start_dim ", start_axis, " lies behind end_dim ", end_axis));
  }
  Shape shape;
  int64_t merged = 1;
  for (int i = 0; i < tensor.ndim(); ++i) {
    if (i < first || i > last) {
      shape.push_back(tensor.shape(i));
    } else {
      merged *= tensor.shape(i);
      if (i == last) shape.push_back(merged);
    }
  }
  return reshape(tensor, shape);
}

Tensor permute(const Tensor& tensor, std::span<const int64_t> axes) {
  return tensor.with_layout(permute(tensor.layout(), axes));
}

Tensor transpose(const Tensor& tensor) {
  std::vector<int64_t> axes;
  for (int64_t i = tensor.ndim() - 1; i >= 0; --i) axes.push_back(i);
  return permute(tensor, axes);
}

Tensor swap_axes(const Tensor& tensor, int64_t axis0, int64_t axis1) {
  const int a = normalize_axis(axis0, tensor.ndim(), "swapaxes");
  const int b = normalize_axis(axis1, tensor.ndim(), "swapaxes");
  Layout layout = tensor.layout();
  std::swap(layout.shape[a], layout.shape[b]);
  std::swap(layout.strides[a], layout.strides[b]);
  return tensor.with_layout(layout);
}

Tensor matrix_transpose(const Tensor& tensor) {
  if (tensor.ndim() < 2) {
    throw ShapeError(
        cat("matrix_transpose: x has shape ", tensor.shape(), "; it needs at least 2 dimensions"));
  }
  return swap_axes(tensor, -2, -1);
}

Tensor move_axis(const Tensor& tensor, int64_t source, int64_t destination) {
  const int from = normalize_axis(source, tensor.ndim(), "moveaxis");
  const int to = normalize_axis(destination, tensor.ndim(), "moveaxis");
  Layout layout = remove_axis(tensor.layout(), from);
  layout.shape.insert(to, tensor.shape(from));
  layout.strides.insert(to, tensor.strides()[from]);
  return tensor.with_layout(layout);
}

Tensor move_axes(const Tensor& tensor, std::span<const int64_t> sources,
                 std::span<const int64_t> destinations) {
  if (sources.size() != destinations.size()) {
    throw ShapeError(cat("moveaxis: source names ", sources.size(), " axes and destination ",
                         destinations.size(), " places; the two must be as many"));
  }
  const std::vector<int> from = axes_as_given(sources, tensor.ndim(), "moveaxis");
  const std::vector<int> to = axes_as_given(destinations, tensor.ndim(), "moveaxis");
  std::vector<int64_t> order(static_cast<size_t>(tensor.ndim()), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (has_axis(from, next)) ++next;
    axis = next++;
  }
  return permute(tensor, order);
}

Tensor broadcast_to(const Tensor& tensor, const Shape& shape) {
  const Tensor result = tensor.with_layout(broadcast_to(tensor.layout(), shape, "broadcast_to"));
  checked_multiply(result.size(), itemsize(result.dtype()), "broadcast_to");
  return result;
}

Tensor squeeze(const Tensor& tensor) {
  std::vector<int64_t> single;
  for (int i = 0; i < tensor.ndim(); ++i) {
    if (tensor.shape(i) == 1) single.push_back(i);
  }
  return squeeze(tensor, single);
}

Tensor squeeze(const Tensor& tensor, std::span<const int64_t> axes) {
  if (axes.empty()) return tensor;  // normalize_axes takes none for all
  const std::vector<int> chosen = normalize_axes(axes, tensor.ndim(), "squeeze");
  Layout layout = tensor.layout();
  for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
    if (layout.shape[*it] != 1) {
      throw ShapeError(cat("squeeze: axis ", *it, " has size ", layout.shape[*it],
                           ", only axes of size 1 can be removed"));
    }
    layout = remove_axis(layout, *it);
  }
  return tensor.with_layout(layout);
}

Tensor unsqueeze(const Tensor& tensor, int64_t axis) {
  return tensor.with_layout(
      insert_axis(tensor.layout(), normalize_axis(axis, tensor.ndim() + 1, "unsqueeze")));
}

Tensor unsqueeze(const Tensor& tensor, std::span<const int64_t> axes) {
  if (axes.empty()) return tensor;
  const int ndim = tensor.ndim() + static_cast<int>(std::min<size_t>(axes.size(), kMaxDims));
  if (ndim > kMaxDims) {
    throw ShapeError(cat("expand_dims: ", axes.size(), " axes more than the tensor's ",
                         tensor.ndim(), " are beyond ", kMaxDims));
  }
  Layout layout = tensor.layout();
  for (const int axis : normalize_axes(axes, ndim, "expand_dims")) {
    layout = insert_axis(layout, axis);
  }
  return tensor.with_layout(layout);
}

std::vector<Tensor> unstack(const Tensor& tensor, int64_t axis) {
  const int chosen = normalize_axis(axis, tensor.ndim(), "unstack");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < tensor.shape(chosen); ++i) {
    parts.push_back(tensor.with_layout(select(tensor.layout(), chosen, i)));
  }
  return parts;
}

std::vector<Tensor> broadcast_arrays(std::span<const Tensor> tensors) {
  Shape shape;
  for (const Tensor& each : tensors) {
    shape = broadcast_shapes(shape, each.shape(), "broadcast_arrays");
  }
  std::vector<Tensor> results;
  for (const Tensor& each : tensors) results.push_back(broadcast_to(each, shape));
  return results;
}

SliceRange resolve_slice(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                         int64_t step) {
  if (step == 0) throw ExecutionError("slice: step must not be 0");
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t missing) {
    if (!given) return missing;
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const int64_t first = bound(start, step > 0 ? lowest : highest);
  const int64_t last = bound(stop, step > 0 ? highest : lowest);
  const int64_t span = step > 0 ? last - first : first - last;
  const int64_t pace = step > 0 ? step : -std::max(step, -std::numeric_limits<int64_t>::max());
  return {first, span <= 0 ? 0 : (span - 1) / pace + 1, step};
}

int64_t resolve_index(int64_t index, int64_t size, int axis) {
  if (index < -size || index >= size) {
    throw IndexError(cat("index: ", index, " is out of range for axis ", axis, " of size ", size));
  }
  return index < 0 ? index + size : index;
}

Tensor slice(const Tensor& tensor, int64_t axis, std::optional<int64_t> start,
             std::optional<int64_t> stop, int64_t step) {
  const int chosen = normalize_axis(axis, tensor.ndim(), "slice");
  const SliceRange range = resolve_slice(tensor.shape(chosen), start, stop, step);
  return tensor.with_layout(slice(tensor.layout(), chosen, range.first, range.length, range.step));
}

Tensor select(const Tensor& tensor, int64_t axis, int64_t index) {
  const int chosen = normalize_axis(axis, tensor.ndim(), "select");
  return tensor.with_layout(
      select(tensor.layout(), chosen, resolve_index(index, tensor.shape(chosen), chosen)));
}

Tensor real_part(const Tensor& x) { return is_complex(x.dtype()) ? select(as_real(x), -1, 0) : x; }

Tensor imaginary_part(const Tensor& x) {
  if (!is_complex(x.dtype())) {
    throw DTypeError(cat("imag: a ", x.dtype(), " tensor has no imaginary part in its memory"));
  }
  return select(as_real(x), -1, 1);
}

Tensor as_real(const Tensor& x) {
  if (!is_complex(x.dtype())) return x;
  Layout layout = x.layout();
  for (int64_t& stride : layout.strides) stride *= 2;
  layout.offset *= 2;
  layout.shape.push_back(2);
  layout.strides.push_back(1);
  return {x.storage(), layout, real_dtype(x.dtype())};
}

}  // namespace cuop
