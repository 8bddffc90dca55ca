// Sorting of strided lines on the CPU.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// Sorts every line of x along `axis` into `out` (x's dtype and shape, any strides).
void sort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// The same for int64 positions.
void argsort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// Marks with 1 in `starts` where, in the order given, an element differs from the one before.
void mark_runs_cpu(const Tensor& x, const Tensor& order, int64_t* starts);

}  // namespace cuop::kernels
