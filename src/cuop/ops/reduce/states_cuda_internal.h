// Internal: the GPU's kernels of states that have been written to memory, named apart from running
// them.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop::kernels {

/// Of kinds whose states are not values: kCompensated, kExact and kMoments.
jit::TextKernel merge_states_kernel(ReduceKind kind);
jit::TextKernel finish_states_kernel(ReduceKind kind);

}  // namespace cuop::kernels
