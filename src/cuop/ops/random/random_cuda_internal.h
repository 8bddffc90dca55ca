// The GPU's kernels of random numbers, apart from running them, so that a compiler can check them
// where no GPU is.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/random/random_kernels.h"

namespace cuop::kernels {

jit::TextKernel random_fill_kernel(DType dtype, Distribution distribution);

}  // namespace cuop::kernels
