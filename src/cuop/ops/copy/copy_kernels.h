// Internal: the device kernels behind copies. Shapes are equal, memory does not overlap.
#pragma once

#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/copy_arguments.cuh"

namespace cuop::kernels {

void strided_copy_cpu(const Tensor& dst, const Tensor& src);
void strided_copy_cuda(const Tensor& dst, const Tensor& src);

/// From another process's memory, which dst's GPU reads, of one dtype. Long rows go by the copy
/// engine: it is faster there than kernels, and slower where the memory is a peer's of this process
/// (1.15 and 1.7 ms for 256 MiB each way in rows of 32 KiB; kernels 1.57 and 1.16).
void copy_imported_cuda(const Tensor& dst, const Tensor& src);

/// The copy as one of tiles, where both tensors, of one dtype and shape, have neighbours but along
/// different axes; nothing for others, and where tiles would be mostly empty.
std::optional<jit::TransposedCopy> plan_transposed_copy(const Tensor& to, const Tensor& from);

/// Elements along the edge of a tile.
int transpose_tile(int64_t itemsize);
jit::TextKernel transposed_copy_kernel(int64_t itemsize);

}  // namespace cuop::kernels
