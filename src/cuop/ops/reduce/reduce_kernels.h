// Internal: the device kernels behind reduce.h.
#pragma once

#include <vector>

#include "cuop/ops/reduce/reduction.h"

namespace cuop::kernels {

/// Writes the reduction of x over `axes` to `result`, which has the shape of x with those axes of
/// size 1.
void reduce_cpu(const char* who, const Reduction& reduction, const Tensor& x,
                const std::vector<int>& axes, const Tensor& result);

void reduce_cuda(const char* who, const Reduction& reduction, const Tensor& x,
                 const std::vector<int>& axes, const Tensor& result);

/// `states` (contiguous bytes) <- states of the fold of x over `axes`, in row-major order of the
/// kept axes. On a GPU they have the CPU's form; those of sums its bits too, but for plain ones.
void reduce_states_cpu(const char* who, const FoldInput& input, const Tensor& x,
                       const std::vector<int>& axes, const Tensor& states);
void reduce_states_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, const Tensor& states);
/// into <- into with from, state by state; contiguous bytes, aligned as the states are.
void merge_states_cpu(const FoldInput& input, const Tensor& into, const Tensor& from);
void merge_states_cuda(const FoldInput& input, const Tensor& into, const Tensor& from);
/// As finish_states; values may be in the memory of the states.
Tensor finish_states_cuda(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                          int64_t count, DType result);

/// result <- position of the first largest (or smallest) element along the axis; `result` has the
/// shape of x with that axis of size 1.
void arg_reduce_cpu(const Tensor& x, int axis, bool is_max, const Tensor& result);
void arg_reduce_cuda(const Tensor& x, int axis, bool is_max, const Tensor& result);

/// result <- running sum of x along the axis; the dtype of `result` is what is added in.
void cumsum_cpu(const Tensor& x, int axis, const Tensor& result);
/// The same with sums of floats in double, each result rounded once.
void cumsum_cuda(const Tensor& x, int axis, const Tensor& result);

}  // namespace cuop::kernels
