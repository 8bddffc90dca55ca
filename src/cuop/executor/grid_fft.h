// Transforms of which not even one fits on a device: in passes over the host's memory.
#pragma once

#include "cuop/executor/operations.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// All at once where that is predicted to take least and fits, else rows and then columns.
/// ShapeError unless the grid has 2 dimensions.
std::vector<TilePass> fft2d_passes(const Header& grid, FftNorm norm, const PlanPass& plan);

/// Collective: the 2-D transform of one grid [h, w] on rank 0: by one device where that is
/// predicted to take least, else rows and then columns by all of them.
Tensor fft2d_grid(const dist::CommunicatorPtr& comm, const Tensor& x, FftNorm norm,
                  const TiledOptions& options = {});

/// Collective: the 1-D transform of one line on rank 0, cut or padded to `n`. One that fits on no
/// device is seen as a grid (plan/four_step_plan.h): columns, twiddle factors, rows, and
/// transposed. MemoryError for one whose length has no factors.
Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options = {});

}  // namespace cuop::executor
