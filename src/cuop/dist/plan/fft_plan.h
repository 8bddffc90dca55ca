// Planning Fourier transforms along some axes of a tensor. In one pass where another dimension can
// be split; else in two (a slab: all axes but one, then that one) or three (pencils of a volume,
// over a grid of ranks). Real numbers travel before they become complex, and of real input only
// half of the spectrum is made and sent.
#pragma once

#include <string_view>

#include "cuop/dist/plan/fft_problem.h"

namespace cuop::dist {

/// Strategies: "root" (when x lies on one rank), "keep" (the axes are whole where x lies), "batch"
/// (split along the longest other dimension), "one_rank" (a single axis and no other dimension),
/// "four_step" (a single axis whose length has factors, over all ranks, where other dimensions are
/// shorter than there are ranks: plan/four_step_plan.h), "chirp" (one line of any length over all
/// ranks: plan/chirp_plan.h), "pencil" of 2 axes, and of more "slab" (two passes) and "pencil"
/// (three, on 2-D grids of ranks).
Plan plan_fft(const FftProblem& problem, const Machine& machine, std::string_view strategy = {});

}  // namespace cuop::dist
