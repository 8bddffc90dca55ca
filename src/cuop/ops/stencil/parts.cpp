#include <algorithm>

#include "cuop/ops/index/view.h"
#include "cuop/ops/stencil/parts_internal.h"

namespace cuop::kernels {

bool is_by_parts(const Tensor& grid, const TapList& list) {
  return is_complex(grid.dtype()) &&
         std::all_of(list.taps.begin(), list.taps.end(),
                     [](const Tap& tap) { return tap.weight.imag() == 0.0; });
}

Tensor by_parts(const Tensor& grid) {
  return reshape(as_real(grid), {grid.shape(0), 2 * grid.shape(1)});
}

TapList by_parts(TapList list) {
  list.column_radius *= 2;
  for (Tap& tap : list.taps) tap.column *= 2;
  return list;
}

}  // namespace cuop::kernels
