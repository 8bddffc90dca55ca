// Internal: an operator on given rows as the kernels of both devices take it.
#pragma once

#include "cuop/core/five_point.h"
#include "cuop/ops/poisson/five_point_arguments.cuh"

namespace cuop::kernels {

inline jit::GridRows grid_rows(const FivePoint& op, int64_t first) {
  return {op.height,
          op.width,
          first,
          op.is_periodic() ? 1 : 0,
          op.ends == AxisEnds::kZeroFlux ? 1 : 0,
          static_cast<int64_t>(colours_of(op).size()),
          op.down,
          op.across};
}

}  // namespace cuop::kernels
