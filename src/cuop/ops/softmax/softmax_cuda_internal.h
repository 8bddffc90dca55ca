// Internal: which of the softmax kernels of softmax.cuh is used.
#pragma once

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

/// For x and y at these addresses.
jit::RowPlan softmax_rows_plan(int64_t length, DType dtype,
                               std::initializer_list<const void*> addresses);
jit::TextKernel softmax_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_log);
/// `lanes` threads share a column: 1 or 8.
jit::TextKernel softmax_columns_kernel(DType dtype, int lanes, bool is_log);

}  // namespace cuop::kernels
