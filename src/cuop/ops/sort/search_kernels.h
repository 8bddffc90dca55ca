// Places of values among sorted elements.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/sort/search_arguments.cuh"

namespace cuop::kernels {

/// Contiguous tensors, `places` of int64, the others of one dtype.
void search_sorted_cpu(const Tensor& sorted, const Tensor& values, bool is_right,
                       const Tensor& places);
void search_sorted_cuda(const Tensor& sorted, const Tensor& values, bool is_right,
                        const Tensor& places);

jit::TextKernel search_sorted_kernel(DType dtype);
/// What either kernel is given.
jit::SortedSearch search_arguments(const Tensor& sorted, const Tensor& values, bool is_right,
                                   const Tensor& places);

}  // namespace cuop::kernels
