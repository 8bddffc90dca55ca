// Outputs of kernels that write row-major tensors alone.
#pragma once

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop {

/// Has `fill` write the result: in place where it is row-major of that dtype, else into a tensor
/// that is, which is then copied.
template <class Fill>
void fill_dense(const Tensor& result, DType dtype, Fill&& fill) {
  if (result.is_contiguous() && result.dtype() == dtype) return fill(result);
  const Tensor dense = empty(result.shape(), dtype, result.device());
  fill(dense);
  copy_into(result, dense);
}

}  // namespace cuop
