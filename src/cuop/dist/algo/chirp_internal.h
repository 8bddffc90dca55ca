// Internal: the chirps of a transform that is a convolution (plan/chirp_plan.h), and following the
// plan of one over ranks.
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/plan/chirp_plan.h"
#include "cuop/ops/fft/chirp.h"
#include "cuop/ops/fft/fft.h"

namespace cuop::dist {

/// Of blocks of columns from `first` on of the line as a matrix.
spectral::Chirp chirp_of_input(const ChirpSizes& sizes, int64_t first);
/// Of ones, what the input is folded with, divided by m: nothing else is scaled before the end, so
/// that no number between is much larger than what is made.
spectral::Chirp chirp_of_filter(const ChirpSizes& sizes, int64_t first);
/// With all scales of the result; of what becomes real twice the real part is it.
spectral::Chirp chirp_of_result(const ChirpSizes& sizes, int64_t first, FftNorm norm);

/// x transformed, lying as the plan's outputs[0] says.
DistTensor follow_chirp(const Plan& plan, const FftProblem& problem, FftNorm norm,
                        const DistTensor& x);

}  // namespace cuop::dist
