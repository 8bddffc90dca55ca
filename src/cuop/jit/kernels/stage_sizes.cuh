// Of a pipeline of stages (stage_pipeline.cuh), for host and device.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// Of the block, in warpgroups: two that work and one that brings.
inline constexpr int kWorkingWarpgroups = 2;
inline constexpr int kPipelineThreads = 128 * (kWorkingWarpgroups + 1);
/// Stages begin at multiples of it.
inline constexpr int kStageAlignment = 1024;

/// Bytes of the launch's shared memory, `spare` of which are behind the stages.
CUOP_FN constexpr int pipeline_bytes(int stage_bytes, int stages, int spare = 0) {
  return stage_bytes * stages + kStageAlignment + spare;
}

}  // namespace cuop::jit
