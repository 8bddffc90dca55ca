// Fourier transforms of cuFFT on a GPU, with a cache of plans.
#pragma once

#include <array>

#include "cuop/backend/fft_spec.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// A slower axis of transforms in two or three dimensions: its length, and how many positions of
/// the next faster axis lie between two of it on each side.
struct FftSlowerAxis {
  int64_t n = 1;
  int64_t in_pitch = 1;
  int64_t out_pitch = 1;
  bool operator==(const FftSlowerAxis&) const = default;
};
/// The fastest axis of the transforms is that of `lines`, of which each is one transform then.
struct FftGridSpec {
  FftPlanSpec lines;
  int slower_count = 0;
  std::array<FftSlowerAxis, 2> slower = {};  ///< the slowest first
  bool operator==(const FftGridSpec&) const = default;
};

/// Runs the transforms on the stream; `in` and `out` are the same or do not overlap. kRealBackward
/// may overwrite its input. `who` names the operator in errors: DeviceError when there is no cuFFT,
/// ExecutionError for what it refuses.
void fft(const char* who, const FftGridSpec& spec, void* in, void* out, Stream stream);

}  // namespace cuop::backend::cuda
