// 2-D transforms of which not even one fits on a device: in passes over the host's memory.
#pragma once

#include "cuop/executor/call_plan.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// All at once where that is predicted to take least and fits, else rows and then columns.
/// ShapeError unless the grid has 2 dimensions.
CallPlan fft2d_plan(const Header& grid, FftNorm norm, const PlanPass& plan);

/// Collective: the 2-D transform of one grid [h, w] on rank 0: by one device where that is
/// predicted to take least, else rows and then columns by all of them.
Tensor fft2d_grid(const dist::CommunicatorPtr& comm, const Tensor& x, FftNorm norm,
                  const TiledOptions& options = {});

}  // namespace cuop::executor
