// Sorting of strided lines.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// Sorts every line of x along `axis` into `out` (x's dtype and shape, any strides).
void sort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
void sort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// The same for int64 positions.
void argsort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
void argsort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// Marks in `starts` where, in the order given, an element of x differs from the one before; all
/// contiguous.
void mark_runs_cpu(const Tensor& x, const Tensor& order, const Tensor& starts);
void mark_runs_cuda(const Tensor& x, const Tensor& order, const Tensor& starts);

}  // namespace cuop::kernels
