// Convolutions of cuDNN on a GPU, with a cache of plans.
#pragma once

#include <string>
#include <vector>

#include "cuop/backend/cuda/conv_shape.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// What the addresses of its tensors must be multiples of, in bytes.
inline constexpr int64_t kConvAlignment = 16;
/// Bytes that an engine's workspace has at most, where this thread does not ask for less.
inline constexpr int64_t kConvWorkspace = int64_t{1} << 30;
/// Addresses of the tensors of a convolution; `bias` only where the shape has one.
struct ConvData {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
};

/// Why there is no cuDNN and how to get it; "" when there is one.
std::string cudnn_absence();

/// Why cuDNN has nothing for such a convolution: its dtype, a size beyond 32 bits; "" otherwise.
std::string conv_obstacle(const ConvShape& shape);

/// The problem in words, for keys.
std::string conv_text(const ConvShape& shape);
/// The engines that cuDNN offers for the problem and that keep what `conv` promises, in words that
/// mean the same to the same version of the library; its own choice first.
std::vector<std::string> conv_engines(const char* who, const ConvShape& shape, Stream stream,
                                      size_t most);

/// Whether one kernel of cuDNN computes this on the stream's device (with a bias or a rectifier it
/// may not): by the engine, "" for cuDNN's own choice. DeviceError when there is no cuDNN.
bool has_conv(const char* who, const ConvShape& shape, const std::string& engine, Stream stream);

/// Runs it on the stream; false, and nothing is done, when cuDNN does not offer the engine ("" for
/// its own choice), or none that keeps what follows. float32 is computed in IEEE float32; float16
/// and bfloat16 are accumulated in float32 and rounded once. An element of y depends on its own
/// window of x alone, and is the same in every run. `who` (a literal) names the operator in errors:
/// DeviceError when there is no cuDNN, ExecutionError for what it refuses.
[[nodiscard]] bool conv(const char* who, const ConvShape& shape, const std::string& engine,
                        const ConvData& data, Stream stream);

}  // namespace cuop::backend::cuda
