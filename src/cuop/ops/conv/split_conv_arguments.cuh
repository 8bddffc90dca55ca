// Convolutions of float32 whose elements are split into bfloat16 numbers: what the kernels are
// given; host and device read the same.
//
// Of x, each channel is laid out with zeros around it: positions [batch, extent...] for each plane,
// the elements that taps of one remainder by the stride meet. There a tap is as far from the first
// one at every position. Eight positions are the lines of a group (split_product_arguments.cuh), a
// segment of `segment` positions apart; so a tap is a number of groups away, and a tile finds the
// parts that it needs at one place, whole.
#pragma once

#include "cuop/jit/kernels/divisor.h"
#include "cuop/jit/kernels/stage_sizes.cuh"
#include "cuop/ops/matmul/split_product_arguments.cuh"

namespace cuop::jit {

/// Of a kernel, all spatial axes together; planes are no more.
inline constexpr int kMostSplitTaps = 64;
/// Neighbouring groups that a block splits at a time, their bytes in shared memory, where they lie
/// a piece apart so that lanes write to different banks, and the launch's.
inline constexpr int kImageGroups = 32;
inline constexpr int kImageGroupBytes = kSplitGroupBytes + 16;
inline constexpr int kImageBytes = kImageGroups * kImageGroupBytes;

/// x [batch, channels, in...], w [out_channels, channels, kernel...], bias [out_channels] or null
/// and y [batch, out_channels, out...], all contiguous with three spatial axes.
struct SplitConv {
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  int64_t batch, channels, out_channels;
  int in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  /// Bytes in the order of the depth: 32 channels, then taps.
  SplitLines weights;
  /// Of x: [steps of 32 channels, planes, plane_groups, kSplitGroupBytes].
  unsigned char* parts;
  int64_t segment, plane_groups;
  Divisor extent[3];
  int64_t positions;
  int planes, taps;
  int plane_start[kMostSplitTaps][3];  ///< the element of x at a plane's first position
  int64_t tap_groups[kMostSplitTaps];  ///< from a position's group to the one that a tap meets
  /// The bits of an image's largest magnitude, and the complement of those of its least but 0, of
  /// finite elements; then whether an image needs a power of two.
  unsigned* ranges;
  int64_t row_tiles, tiles;
  bool has_relu;
};

/// Positions of a tile: `RowWarpgroups` of the two have rows of their own, and share positions.
CUOP_FN constexpr int split_conv_groups(int columns, int row_warpgroups) {
  return columns * (2 / row_warpgroups) / kSplitGroup;
}
CUOP_FN constexpr int split_conv_stage_bytes(int columns, int row_warpgroups) {
  return (64 * row_warpgroups / kSplitGroup + split_conv_groups(columns, row_warpgroups)) *
         kSplitGroupBytes;
}
CUOP_FN constexpr int split_conv_stages(int columns, int row_warpgroups) {
  return columns < 128 ? 5 : row_warpgroups == 2 ? 4 : 3;
}
/// Rows of a working warp, whose threads exchange its sums of half the positions before they write.
inline constexpr int kSplitConvWarpRows = 16;
CUOP_FN constexpr int split_conv_exchange_bytes(int columns) {
  return kSplitConvWarpRows * columns / 2 * static_cast<int>(sizeof(float));
}
/// Of all of them.
CUOP_FN constexpr int split_conv_spare_bytes(int columns) {
  return 4 * kWorkingWarpgroups * split_conv_exchange_bytes(columns);
}

}  // namespace cuop::jit
