// The kernel of transposed copies, for its launch and its tests.
#pragma once

#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/transposed_copy_arguments.cuh"

namespace cuop::kernels {

/// The copy as one of tiles, where both tensors, of one dtype and shape, have neighbours but along
/// different axes; nothing for others, and where tiles would be mostly empty.
std::optional<jit::TransposedCopy> plan_transposed_copy(const Tensor& to, const Tensor& from);

/// Elements along the edge of a tile.
int transpose_tile(int64_t itemsize);
jit::TextKernel transposed_copy_kernel(int64_t itemsize);

}  // namespace cuop::kernels
