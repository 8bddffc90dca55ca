// Convolutions of cuDNN by the engine that the tuner has stored for the problem.
#pragma once

#include "cuop/backend/cuda/cudnn.h"

namespace cuop::kernels {

/// backend::cuda::conv by the best engine that is known; searches first where the caller asked for
/// it (tune/library_tuning.h).
[[nodiscard]] bool tuned_conv(const char* who, const backend::cuda::ConvShape& shape,
                              const backend::cuda::ConvData& data, Stream stream);
/// Whether that does something.
bool has_tuned_conv(const char* who, const backend::cuda::ConvShape& shape, Stream stream);

}  // namespace cuop::kernels
