// Internal: the device kernels behind copies. Shapes are equal, memory does not overlap.
#pragma once

#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/copy/copy_arguments.cuh"

namespace cuop::kernels {

void strided_copy_cpu(const Tensor& dst, const Tensor& src);
void strided_copy_cuda(const Tensor& dst, const Tensor& src);

/// Of one dtype, beside other work: long rows by the copy engine, which leaves the multiprocessors
/// to what is computed and memory to what comes over links meanwhile. src may be of another GPU, a
/// peer's of this process or another process's, which dst's GPU reads: the engine has all of a
/// link, of which kernels reach 0.86 (two H200s).
void copy_beside_work_cuda(const Tensor& dst, const Tensor& src);
/// Few bytes of another GPU's, both tensors contiguous and of as many bytes, by a kernel, which
/// begins and ends sooner than the copy engine. False, and nothing is done, where there are more
/// and beside other work.
bool copy_few_from_peer_cuda(const Tensor& dst, const Tensor& src);

/// The copy as one of tiles, where both tensors, of one dtype and shape, have neighbours but along
/// different axes; nothing for others, and where tiles would be mostly empty.
std::optional<jit::TransposedCopy> plan_transposed_copy(const Tensor& to, const Tensor& from);

/// Elements along the edge of a tile.
int transpose_tile(int64_t itemsize);
jit::TextKernel transposed_copy_kernel(int64_t itemsize);

}  // namespace cuop::kernels
