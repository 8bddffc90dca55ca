// What an element-wise operation over ranks takes: a distributed tensor or a host number, which is
// the same on all ranks.
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/ops/elementwise/operand.h"

namespace cuop::dist {

using DistOperand = OperandOf<DistTensor>;

}  // namespace cuop::dist
