// Convolutions of cuDNN by the engine that the tuner has stored for the problem.
#pragma once

#include <functional>

#include "cuop/backend/cuda/cudnn.h"

namespace cuop::kernels {

/// backend::cuda::conv by the best engine that is known; searches first where the caller asked for
/// it (tune/library_tuning.h).
[[nodiscard]] bool tuned_conv(const char* who, const backend::cuda::ConvShape& shape,
                              const backend::cuda::ConvData& data, Stream stream);

/// Our own kernels on matrix units with these operands; they may be copies.
using ConvByParts = std::function<void(const backend::cuda::ConvData&)>;
/// Whether our kernels are known to be faster than cuDNN's engines, which the same search compares;
/// `otherwise` where nothing is known.
bool is_faster_by_parts(const char* who, const backend::cuda::ConvShape& shape,
                        const backend::cuda::ConvData& data, Stream stream,
                        const ConvByParts& by_parts, bool otherwise);
/// Without a search.
bool is_known_faster_by_parts(const char* who, const backend::cuda::ConvShape& shape, Stream stream,
                              bool otherwise);

/// Whether tuned_conv does something.
bool has_tuned_conv(const char* who, const backend::cuda::ConvShape& shape, Stream stream);

}  // namespace cuop::kernels
