// What a Fourier transform over ranks is asked to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/plan/plan.h"

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

/// Shape and dtype of the result.
Placement fft_result(const FftProblem& problem);
/// What it needs at least over ranks, whichever way it takes.
Floor fft_floor(const FftProblem& problem, const Machine& machine);

}  // namespace cuop::dist
