// Convolutions of cuDNN on a GPU, with a cache of plans.
#pragma once

#include <array>
#include <string>

#include "cuop/core/dtype.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// x [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...] and
/// y [batch, out_channels, out...], row-major; missing leading spatial axes have size 1.
struct ConvShape {
  using Axes = std::array<int64_t, 3>;
  DType dtype = DType::kFloat32;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool operator==(const ConvShape&) const = default;
};

/// Why cuDNN cannot compute it: its dtype, a size beyond 32 bits, no library; "" when it can.
std::string conv_obstacle(const ConvShape& shape);

/// y <- conv(x, w) + bias, bias null for none. float32 is computed in float32 throughout; float16
/// and bfloat16 are accumulated in float32. Nothing of the shape is 0. `who` names the operator in
/// errors: DeviceError when there is no cuDNN, ExecutionError for what it refuses.
void conv(const char* who, const ConvShape& shape, const void* x, const void* w, const void* bias,
          void* y, Stream stream);

}  // namespace cuop::backend::cuda
