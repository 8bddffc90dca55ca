// Complex grids under real kernels: the parts of a number are treated alike, as columns of a real
// grid twice as wide.
#pragma once

#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop::kernels {

/// Whether the grid is complex and all weights are real.
bool is_by_parts(const Tensor& grid, const TapList& list);
Tensor by_parts(const Tensor& grid);
TapList by_parts(TapList list);

}  // namespace cuop::kernels
