// Products of two tensors, summed over axes that are named by their numbers.
#pragma once

#include <span>
#include <vector>

#include "cuop/core/contraction.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// Sum over the paired axes axes_a[i] of a and axes_b[i] of b, in the promoted dtype; the free axes
/// of a, then those of b. Each tensor is read where it lies if that is a stack of matrices, else
/// copied once, as by einsum. ShapeError for axes that are out of range, given twice or of
/// different sizes.
Tensor tensordot(const Tensor& a, const Tensor& b, std::span<const int64_t> axes_a,
                 std::span<const int64_t> axes_b, const Tensor* out = nullptr);

/// The pairs that a number of axes stands for: the last `count` of a tensor of `ndim_a` dimensions
/// and the first of one of `ndim_b`. ShapeError unless both have so many.
struct PairedAxes {
  std::vector<int64_t> of_a, of_b;
};
PairedAxes last_and_first_axes(int64_t count, int ndim_a, int ndim_b);

/// Names for dimensions, as in an equation: the pairs have one name. Errors as of `tensordot`.
struct TensordotNames {
  Indices a, b, result;
};
TensordotNames tensordot_names(const Shape& a, const Shape& b, std::span<const int64_t> axes_a,
                               std::span<const int64_t> axes_b);

}  // namespace cuop
