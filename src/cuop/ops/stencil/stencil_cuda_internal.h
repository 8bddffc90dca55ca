// Internal: which of the stencil kernels of stencil.cuh is used.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

/// `is_near`: no tap reaches beyond kStencilReach cells; `is_first`: nothing is in the results yet.
jit::TextKernel stencil_kernel(DType dtype, bool is_near, bool is_first);
jit::TextKernel jacobi_kernel(DType dtype, bool is_residual);

}  // namespace cuop::kernels
