// Internal: what fills new tensors, after all checks.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/create/create_arguments.cuh"

namespace cuop::kernels {

/// The contiguous tensor of one axis, of any dtype, gets the sequence's numbers, each converted
/// once.
void fill_whole_cpu(const Tensor& out, const jit::WholeSequence& sequence);
void fill_real_cpu(const Tensor& out, const jit::RealSequence& sequence);
void fill_powers_cpu(const Tensor& out, const jit::PowerSequence& sequence);
void fill_whole_cuda(const Tensor& out, const jit::WholeSequence& sequence);
void fill_real_cuda(const Tensor& out, const jit::RealSequence& sequence);
void fill_powers_cuda(const Tensor& out, const jit::PowerSequence& sequence);

/// On a GPU: any strides; the tensor is not empty and its dtype holds the value.
void fill_strided_cuda(const Tensor& out, const Scalar& value);

enum class SequenceKind : uint8_t { kWhole, kReal, kPowers };
jit::TextKernel fill_sequence_kernel(DType dtype, SequenceKind kind);

}  // namespace cuop::kernels
