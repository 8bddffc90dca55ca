// What transforms over ranks need at least, whichever way they take.
#pragma once

#include "cuop/dist/plan/fft_problem.h"

namespace cuop::dist {

Floor fft_floor(const FftProblem& problem, const Machine& machine);

}  // namespace cuop::dist
