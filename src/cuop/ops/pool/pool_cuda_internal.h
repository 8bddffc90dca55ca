// Internal: which of the pooling kernels of pool.cuh is used.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

/// `is_wide`: indices of 64 bits.
jit::TextKernel pool_kernel(DType dtype, bool is_max, bool is_wide);

}  // namespace cuop::kernels
