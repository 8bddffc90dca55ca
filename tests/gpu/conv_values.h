// Tensors for tests of convolutions on a GPU.
#pragma once

#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {

/// A tensor of these values whose address is that of an element and no more.
inline Tensor misaligned(const Tensor& t) {
  const Tensor longer = empty({t.size() + 1}, t.dtype(), kGpu);
  const Tensor rest = slice(longer, 0, 1, t.size() + 1);
  copy_into(rest, reshape(gpu(t), {t.size()}));
  return reshape(rest, t.shape());
}

}  // namespace cuop
