// Internal: the GPU's kernels of sequences, named apart from running them.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"

namespace cuop::kernels {

enum class SequenceKind : uint8_t { kWhole, kReal, kPowers };
jit::TextKernel fill_sequence_kernel(DType dtype, SequenceKind kind);

}  // namespace cuop::kernels
