// Internal: which of the pooling kernels of pool.cuh is used.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/pool/pool_kernels.h"

namespace cuop::kernels {

struct PoolForm {
  bool is_max = true;
  bool is_wide = false;       ///< indices of 64 bits
  int axes = 3;               ///< the last so many are longer than 1 in x or y
  int height = 0, width = 0;  ///< of a small window; 0: any
  bool is_packed = false;     ///< each row of a window is one aligned access
};
PoolForm pool_form(const Pool& pool, const Tensor& x);
jit::TextKernel pool_kernel(DType dtype, const PoolForm& form);

}  // namespace cuop::kernels
