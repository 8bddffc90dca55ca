// What the direct convolution's kernel is given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

inline constexpr int kConvThreads = threads_or(256);

/// x [batch, groups * group_in, in...], w [groups * group_out, group_in, kernel...], bias [groups *
/// group_out] or null and y [batch, groups * group_out, out...], all contiguous with three spatial
/// axes. Work is counted in tiles along channels of a group, positions (batch and out) and groups.
struct DirectConv {
  const void* x;
  const void* w;
  const void* bias;
  void* y;
  int64_t groups, group_in, group_out;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  int64_t taps;       ///< weights of one output channel
  int64_t positions;  ///< of the batch
  int64_t channel_tiles, position_tiles, tiles;
  bool has_relu;
};

}  // namespace cuop::jit
