// Convolutions of cuDNN on a GPU, with a cache of plans.
#pragma once

#include <array>
#include <string>

#include "cuop/core/dtype.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// x [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...] and
/// y [batch, out_channels, out...], row-major; missing leading spatial axes have size 1. Nothing is
/// empty.
struct ConvShape {
  using Axes = std::array<int64_t, 3>;
  DType dtype = DType::kFloat32;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool has_bias = false;   ///< a bias [out_channels] is added
  bool adds_to_y = false;  ///< the result is added to what y holds
  bool operator==(const ConvShape&) const = default;
};

/// What the addresses of its tensors must be multiples of, in bytes.
inline constexpr int64_t kConvAlignment = 16;
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

/// Whether one kernel of cuDNN computes this on the stream's device (with a bias it may not).
/// DeviceError when there is no cuDNN.
bool has_conv(const char* who, const ConvShape& shape, Stream stream);

/// Runs it on the stream. float32 is computed in IEEE float32; float16 and bfloat16 are accumulated
/// in float32 and rounded once, but infinite sums of float16 may come back finite: some of cuDNN's
/// kernels do not keep them. An element of y depends on its own window of x alone, and is the same
/// in every run. `who` (a literal) names the operator in errors: DeviceError when there is no
/// cuDNN, NotImplementedError when it has no engine, ExecutionError for what it refuses.
void conv(const char* who, const ConvShape& shape, const ConvData& data, Stream stream);

}  // namespace cuop::backend::cuda
