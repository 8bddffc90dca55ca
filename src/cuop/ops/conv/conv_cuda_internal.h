// Internal: the GPU's direct convolution, named and planned apart from running it.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/conv/conv_arguments.cuh"
#include "cuop/ops/conv/conv_kernels.h"

namespace cuop::kernels {

struct DirectConvPlan {
  int own = 1;           ///< output channels of a thread
  bool is_wide = false;  ///< indices of 64 bits
  jit::DirectConv arguments{};
};
DirectConvPlan plan_direct_conv(const Conv& conv);

jit::TextKernel direct_conv_kernel(DType dtype, int own, bool is_wide);

/// Every dtype but bool; 16-bit floats are added up in float32 and rounded once.
void conv_direct_cuda(const Conv& conv);

}  // namespace cuop::kernels
