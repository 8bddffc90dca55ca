// Flatten and View as operator objects, for float and double, and the window as a view.
#pragma once

#include <optional>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/window_offset.h"
#include "cuop/operators/operator.h"

namespace cuop {

/// A window of the tensor as a view. From a number of elements on: offset, offset + 1, ... in
/// row-major order under a new shape. From an index of each axis on: a box of the given shape,
/// which has the tensor's number of dimensions. ShapeError when the window leaves the tensor, or,
/// of the first kind, the tensor's strides leave no view.
Tensor window(const Tensor& tensor, const WindowOffset& offset, const Shape& shape);

/// y <- x with the axes from `start_dim` on merged into one. y may be x's own memory.
template <class T>
class Flatten : public Operator {
 public:
  explicit Flatten(int64_t start_dim = 0)
      : Operator("Flatten", dtype_of<T>), start_dim_(start_dim) {}
  /// Without a start_dim here the constructor's is used, or 1 when the shape of y asks for that:
  /// the usual flattening of a batch.
  Tensor forward(const Tensor& x, const Tensor& y, std::optional<int64_t> start_dim = {}) const {
    return run_task(*this, x, y, start_dim);
  }
  Task task(const Tensor& x, const Tensor& y, std::optional<int64_t> start_dim = {}) const;

 private:
  int64_t start_dim_;
};

/// y <- the window of x of the given shape that begins at the offset: one index of each axis, or a
/// number of elements (row-major). Offset and shape are set beforehand or given with the call; the
/// shape of y stands in for a shape that is neither. y may share memory with x.
template <class T>
class View : public Operator {
 public:
  View() : Operator("View", dtype_of<T>) {}
  void set_offset(const WindowOffset& offset);
  void set_shape(const Shape& shape);
  Tensor forward(const Tensor& x, const Tensor& y, const std::optional<WindowOffset>& offset = {},
                 const std::optional<Shape>& shape = {}) const {
    return run_task(*this, x, y, offset, shape);
  }
  Task task(const Tensor& x, const Tensor& y, const std::optional<WindowOffset>& offset = {},
            const std::optional<Shape>& shape = {}) const;

 private:
  mutable ForkMutex mutex_;
  WindowOffset offset_;
  std::optional<Shape> shape_;
};

}  // namespace cuop
