// Internal: following the plan of one long transform (plan/four_step_plan.h).
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/ops/fft/fft.h"

namespace cuop::dist {

/// x transformed, lying as the plan's outputs[0] says.
DistTensor follow_four_step(const Plan& plan, const FftProblem& problem, FftNorm norm,
                            const DistTensor& x);

}  // namespace cuop::dist
