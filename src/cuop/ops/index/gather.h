// Reading and writing elements that integer tensors or masks name. Negative indices count from the
// end; an index outside its axis is an IndexError, found before anything is written. On a GPU that
// check waits for the stream, and so does what has as many elements as a mask has true ones.
#pragma once

#include <optional>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/axes.h"

namespace cuop {

/// x's slices at `indices` along `axis`: shape x[:axis] + indices + x[axis+1:]. Without an axis, of
/// the flattened x.
Tensor take(const Tensor& x, const Tensor& indices, std::optional<int64_t> axis = {},
            const Tensor* out = nullptr);
/// out[..., j, ...] = x[..., indices[..., j, ...], ...]; the other axes broadcast against each
/// other (NumPy's take_along_axis).
Tensor take_along_axis(const Tensor& x, const Tensor& indices, int64_t axis,
                       const Tensor* out = nullptr);
/// out[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`, for indices that reach no
/// further than x along the other axes (PyTorch's gather; nothing broadcasts).
Tensor gather(const Tensor& x, int64_t axis, const Tensor& indices, const Tensor* out = nullptr);
/// x[..., indices[..., j, ...], ...] = values[..., j, ...], in place; values broadcast to indices.
void put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis);

/// The elements of x where `mask` (broadcast to x) is true, in row-major order, as one axis.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// A copy of x with `value` (one element, or broadcast to x) where `mask` is true.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value,
                   const Tensor* out = nullptr);
/// For each axis the int64 positions of the elements that are not zero, in row-major order.
std::vector<Tensor> nonzero(const Tensor& x);
/// How many elements are not zero.
int64_t count_nonzero(const Tensor& x);
/// The same over the axes, as int64.
Tensor count_nonzero(const Tensor& x, Axes axes, bool keepdims = false);

}  // namespace cuop
