// Internal: the GPU's kernels of sequences, named apart from running them.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

jit::TextKernel fill_sequence_kernel(DType dtype, bool is_whole);

}  // namespace cuop::kernels
