// Fourier transforms of cuFFT on a GPU, with a cache of plans.
#pragma once

#include "cuop/backend/fft_spec.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// Runs the transforms on the stream; `in` and `out` are the same or do not overlap. kRealBackward
/// may overwrite its input. `who` names the operator in errors: DeviceError when there is no cuFFT,
/// ExecutionError for what it refuses.
void fft(const char* who, const FftPlanSpec& spec, void* in, void* out, Stream stream);

}  // namespace cuop::backend::cuda
