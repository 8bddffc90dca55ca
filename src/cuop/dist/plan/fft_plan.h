// Planning Fourier transforms along some axes of a tensor. In one pass where another dimension can
// be split; else in two (a slab: all axes but one, then that one) or three (pencils of a volume,
// over a grid of ranks). Real numbers travel before they become complex, and of real input only
// half of the spectrum is made and sent.
#pragma once

#include <vector>

#include "cuop/dist/plan/pass_plan.h"

namespace cuop::dist {

enum class FftKind : uint8_t { kFft, kIfft, kRfft, kIrfft };

struct FftProblem {
  std::string op;
  Placement x;
  FftKind kind = FftKind::kFft;
  std::vector<int> axes;         ///< the last one is halved by kRfft and made whole by kIrfft
  std::vector<int64_t> lengths;  ///< of the transform along each of them
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when x lies on one rank), "keep" (the axes are whole where x lies), "batch"
/// (split along the longest other dimension), "one_rank" (a single axis and no other dimension),
/// "pencil" of 2 axes, and of more "slab" (two passes) and "pencil" (three, on 2-D grids of ranks).
Plan plan_fft(const FftProblem& problem, const Machine& machine, std::string_view strategy = {});

/// Shape and dtype of the result.
Placement fft_result(const FftProblem& problem);

}  // namespace cuop::dist
