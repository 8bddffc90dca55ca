// Internal: the device kernels behind copies. Shapes are equal, memory does not overlap.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop::kernels {

void strided_copy_cpu(const Tensor& dst, const Tensor& src);
void strided_copy_cuda(const Tensor& dst, const Tensor& src);

}  // namespace cuop::kernels
