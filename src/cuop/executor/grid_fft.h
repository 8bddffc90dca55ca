// Transforms of which not even one fits on a device: in passes over the host's memory.
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

/// At once where that fits. Else one line, whose length has factors, in two passes (line_steps.h).
CallPlan fft_line_plan(const dist::FftBatch& batch, const Header& x, const PlanPass& plan);

/// Collective: the 1-D transform of one line on rank 0, cut or padded for `n`, as its plan says.
Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options = {});

}  // namespace cuop::executor
