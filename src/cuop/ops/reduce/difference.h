// Differences of neighbours.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// x[1:] - x[:-1] along `axis`, `order` times; of bool whether neighbours differ. ExecutionError
/// for a negative order.
Tensor diff(const Tensor& x, int64_t order = 1, int64_t axis = -1);

}  // namespace cuop
