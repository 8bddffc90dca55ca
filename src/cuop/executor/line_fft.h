// 1-D transforms, of which not even one may fit on a device: in passes over the host's memory.
#pragma once

#include "cuop/executor/call_plan.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// At once where that fits. Else one line in four steps (line_steps.h) or as a convolution with a
/// chirp (chirp_line.h): of those that fit by that which is predicted to take least.
CallPlan fft_line_plan(const dist::FftBatch& batch, const Header& x, const PlanPass& plan);

/// Collective: the 1-D transform of one line on rank 0, cut or padded for `n`, as its plan says.
Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options = {});

}  // namespace cuop::executor
