// Convolutions of cuDNN by the engine that the tuner has stored for the problem.
#pragma once

#include "cuop/backend/cuda/cudnn.h"

namespace cuop::kernels {

/// backend::cuda::conv; searches first where the caller asked for it (tune/library_tuning.h).
[[nodiscard]] bool tuned_conv(const char* who, const backend::cuda::ConvShape& shape,
                              const backend::cuda::ConvData& data, Stream stream);
/// backend::cuda::has_conv, with stored engines taken into account.
bool has_tuned_conv(const char* who, const backend::cuda::ConvShape& shape, Stream stream);

}  // namespace cuop::kernels
