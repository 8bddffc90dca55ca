// Internal: the device kernels behind copies. Shapes are equal, memory does not overlap.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop::kernels {

void strided_copy_cpu(const Tensor& dst, const Tensor& src);
void strided_copy_cuda(const Tensor& dst, const Tensor& src);
/// Between row-major tensors of the CPU and of a GPU, of one dtype; done when it returns.
void copy_with_host(const Tensor& to, const Tensor& from);

}  // namespace cuop::kernels
