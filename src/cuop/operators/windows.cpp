#include "cuop/operators/windows.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

void check_offset(const WindowOffset& offset) {
  if (!offset.is_per_axis()) {
    if (offset.elements() >= 0) return;
    throw ShapeError(cat("offset is ", offset.elements(), ", needed is 0 or more"));
  }
  for (const int64_t index : offset.indices()) {
    if (index >= 0) continue;
    throw ShapeError(cat("offset is ", offset.indices(), ", needed is 0 or more of each axis"));
  }
}

/// The box of the tensor that begins at an index of each axis.
Tensor box(const Tensor& tensor, const Dims& indices, const Shape& shape) {
  if (indices.ndim() != tensor.ndim() || shape.ndim() != tensor.ndim()) {
    throw ShapeError(cat("view: offset ", indices, " and shape ", shape, " have ", indices.ndim(),
                         " and ", shape.ndim(), " entries; needed is one for each of the ",
                         tensor.ndim(), " axes of a tensor of shape ", tensor.shape(),
                         ", or an integer offset, which counts elements (row-major)"));
  }
  element_count(shape);
  Tensor result = tensor;
  for (int i = 0; i < tensor.ndim(); ++i) {
    if (indices[i] > tensor.shape(i) - shape[i]) {
      throw ShapeError(cat("view: the window of shape ", shape, " at offset ", indices,
                           " leaves axis ", i, " of the tensor, whose shape is ", tensor.shape()));
    }
    result = slice(result, i, indices[i], indices[i] + shape[i]);
  }
  return result;
}

/// The shape of flatten(x, start_dim).
Shape flat_shape(const Shape& shape, int64_t start_dim) {
  const int start = shape.ndim() == 0 ? 0 : normalize_axis(start_dim, shape.ndim(), "start_dim");
  Shape flat;
  for (int i = 0; i < start; ++i) flat.push_back(shape[i]);
  int64_t rest = 1;
  for (int i = start; i < shape.ndim(); ++i) rest *= shape[i];
  flat.push_back(rest);
  return flat;
}

/// The task of filling y with the elements of x in row-major order; x has as many as y.
Task copy_task(const Tensor& x, const Tensor& y) {
  Task task;
  task.sizes = sizes_of({&x});
  task.cost = {0.0, bytes_of(x, y)};
  task.out = y;
  task.run = [x](const Tensor& out) { copy_into(out, reshape(x, out.shape())); };
  return task;
}

}  // namespace

Tensor window(const Tensor& tensor, const WindowOffset& offset, const Shape& shape) {
  check_offset(offset);
  if (offset.is_per_axis()) return box(tensor, offset.indices(), shape);
  const int64_t start = offset.elements();
  const int64_t count = element_count(shape);
  if (start > tensor.size() - count) {
    throw ShapeError(cat("view: ", count, " elements from offset ", start,
                         " leave the tensor, which has ", tensor.size()));
  }
  const Tensor flat = view(tensor, Shape{tensor.size()});
  return view(slice(flat, 0, start, start + count), shape);
}

template <class T>
Task Flatten<T>::task(const Tensor& x, const Tensor& y, std::optional<int64_t> start_dim) const {
  check(x, "x");
  check(y, "y");
  Shape needed = flat_shape(x.shape(), start_dim.value_or(start_dim_));
  const bool may_be_batch = !start_dim && start_dim_ == 0 && x.ndim() >= 2;
  if (!(y.shape() == needed) && may_be_batch && y.shape() == flat_shape(x.shape(), 1)) {
    needed = y.shape();
  }
  if (!(y.shape() == needed)) {
    const std::string other =
        may_be_batch ? cat(" or ", flat_shape(x.shape(), 1), " (start_dim=1)") : "";
    throw ShapeError(cat("y has shape ", y.shape(), ", needed is ", needed, other,
                         " for x of shape ", x.shape()));
  }
  check_writable(name().c_str(), y);
  return copy_task(x, y);
}

template <class T>
void View<T>::set_offset(const WindowOffset& offset) {
  guarded([&] {
    check_offset(offset);
    const std::lock_guard lock(mutex_);
    offset_ = offset;
  });
}

template <class T>
void View<T>::set_shape(const Shape& shape) {
  guarded([&] {
    element_count(shape);
    const std::lock_guard lock(mutex_);
    shape_ = shape;
  });
}

template <class T>
Task View<T>::task(const Tensor& x, const Tensor& y, const std::optional<WindowOffset>& offset,
                   const std::optional<Shape>& shape) const {
  check(x, "x");
  check(y, "y");
  WindowOffset start;
  Shape needed;
  {
    const std::lock_guard lock(mutex_);
    start = offset.value_or(offset_);
    needed = shape ? *shape : shape_.value_or(y.shape());
  }
  const Tensor source = window(start.is_per_axis() ? x : contiguous(x), start, needed);
  return copy_task(source, prepare_output(name().c_str(), &y, needed, dtype(), x.device()));
}

template class Flatten<float>;
template class Flatten<double>;
template class View<float>;
template class View<double>;

}  // namespace cuop
