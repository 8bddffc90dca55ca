// Views: the same storage under another layout. Nothing is copied except by `reshape` and `flatten`
// when the strides leave no other way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop {

/// Row-major order under a new shape (one -1 is inferred); a view when the strides allow it.
Tensor reshape(const Tensor& tensor, const Shape& shape);
/// As reshape, but a ShapeError instead of a copy.
Tensor view(const Tensor& tensor, const Shape& shape);
/// Merges axes start..end (inclusive) into one.
Tensor flatten(const Tensor& tensor, int64_t start_axis = 0, int64_t end_axis = -1);
Tensor permute(const Tensor& tensor, std::span<const int64_t> axes);
/// Reverses the axes.
Tensor transpose(const Tensor& tensor);
Tensor swap_axes(const Tensor& tensor, int64_t axis0, int64_t axis1);
/// The last two axes exchanged; ShapeError below 2 dimensions.
Tensor matrix_transpose(const Tensor& tensor);
Tensor move_axis(const Tensor& tensor, int64_t source, int64_t destination);
/// Axes sources[i] to places destinations[i]; the others keep their order. ShapeError when an axis
/// or a place is given twice, or one list is longer.
Tensor move_axes(const Tensor& tensor, std::span<const int64_t> sources,
                 std::span<const int64_t> destinations);
Tensor broadcast_to(const Tensor& tensor, const Shape& shape);
/// Removes all axes of size 1.
Tensor squeeze(const Tensor& tensor);
/// Removes the given axes and no other; ShapeError when one is not of size 1.
Tensor squeeze(const Tensor& tensor, std::span<const int64_t> axes);
Tensor unsqueeze(const Tensor& tensor, int64_t axis);
/// New axes of size 1, which are at these places of the result.
Tensor unsqueeze(const Tensor& tensor, std::span<const int64_t> axes);
/// The views at each position of an axis, without it.
std::vector<Tensor> unstack(const Tensor& tensor, int64_t axis = 0);
/// All tensors as views of the shape that they broadcast to.
std::vector<Tensor> broadcast_arrays(std::span<const Tensor> tensors);
/// Elements start, start+step, ... before stop along `axis`, with Python's rules for missing,
/// negative and out-of-range bounds. ExecutionError when step is 0.
Tensor slice(const Tensor& tensor, int64_t axis, std::optional<int64_t> start,
             std::optional<int64_t> stop, int64_t step = 1);
/// What start:stop:step names of an axis of `size` elements: first, first + step, ...
struct SliceRange {
  int64_t first = 0;
  int64_t length = 0;
  int64_t step = 1;
};
/// With Python's rules, as above. ExecutionError when step is 0.
SliceRange resolve_slice(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                         int64_t step);
/// The index counted from the front; IndexError naming `axis` when it is out of range.
int64_t resolve_index(int64_t index, int64_t size, int axis);
/// Drops `axis` at position `index` (negative counts from the back); IndexError when out of range.
Tensor select(const Tensor& tensor, int64_t axis, int64_t index);
/// The real or the imaginary parts of a complex tensor, in its memory; of any other `real_part` is
/// the tensor itself, and `imaginary_part` a DTypeError.
Tensor real_part(const Tensor& x);
Tensor imaginary_part(const Tensor& x);
/// x as real numbers: a complex tensor with an axis of size 2 more, any other as it is.
Tensor as_real(const Tensor& x);

}  // namespace cuop
