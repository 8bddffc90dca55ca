// Following a plan of plan/map_plan.h: fetch what the local block of the result needs, compute it.
#pragma once

#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {

/// Computes the block `output` of the result from the fetched parts of the inputs. Not called where
/// the block is empty.
using LocalWork = std::function<Tensor(const std::vector<Part>& inputs, const Box& output)>;

DistTensor execute_map(const Plan& plan, const std::vector<DistTensor>& inputs,
                       const NeededBox& needed, const LocalWork& work);

}  // namespace cuop::dist
