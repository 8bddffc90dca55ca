// The frame of every distributed operation: agree on the arguments, plan, follow the plan, report.
// An operation is a planner (a pure function) and an executor; both forms of it are made here.
//
//   sharded: all ranks hold their parts. The call's text, shapes and shardings are agreed on; every
//            rank plans for itself, which gives the same plan.
//   rooted:  rank `root` holds the inputs, the others pass undefined tensors. The root checks and
//            plans, tells shapes, dtypes, its machine's figures and the plan's hash; the others
//            plan the same. Inputs and output lie on the root, so that the plan itself contains the
//            scatter and the gather, or stays on the root when that is fastest.
#pragma once

#include <vector>

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// Collective. Inputs share one communicator. Errors of planning are raised before any work and on
/// every rank.
DistTensor run_sharded(const Operation& operation, const std::vector<DistTensor>& inputs,
                       const CallOptions& options = {});

/// Collective. The result is on rank `root`, undefined elsewhere. `inputs` are read on the root
/// only; undefined ones at the end are inputs left out. Where the first lies on a GPU the ranks
/// work on theirs (rank_device); the others are copied to its device, where the result is.
Tensor run_rooted(const CommunicatorPtr& comm, const Operation& operation,
                  const std::vector<Tensor>& inputs, const CallOptions& options = {}, int root = 0);

}  // namespace cuop::dist
