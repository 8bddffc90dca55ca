// Internal: which of the stencil kernels of stencil.cuh is used.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

jit::TextKernel stencil_kernel(DType dtype);
jit::TextKernel jacobi_kernel(DType dtype, bool is_residual);

}  // namespace cuop::kernels
