// Running sums on a GPU: which kernel does what, apart from running it.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/reduce/scan_arguments.cuh"

namespace cuop::kernels {

struct ScanPlan {
  bool by_tiles = false;  ///< else a thread a line
  jit::Scan arguments{};  ///< all but scratch memory
  int64_t blocks = 0;
  int64_t flags = 0;  ///< zeros of scratch memory
  int64_t sums = 0;   ///< of 16 bytes, the same
  void set_scratch(unsigned* zeros, void* values);
};
ScanPlan plan_scan(const Tensor& x, int axis, const Tensor& out);
jit::TextKernel scan_kernel(DType source, DType out, bool by_tiles);

}  // namespace cuop::kernels
