// Internal: float32 convolutions on a GPU's matrix units by parts of the elements.
#pragma once

#include <limits>

#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/conv/split_conv_arguments.cuh"

namespace cuop::kernels {

/// Of a tile each of two warpgroups has 64 channels by `columns` positions (64 or 128): with
/// channels of its own (`row_warpgroups` 2), or with positions of its own (1).
struct SplitConvTileShape {
  int columns, row_warpgroups;
};
inline constexpr SplitConvTileShape kSplitConvTiles[] = {{128, 2}, {128, 1}, {64, 2}, {64, 1}};

/// How a convolution is computed by parts.
struct SplitConvPlan {
  SplitConvTileShape tile{};
  jit::SplitConv arguments{};  ///< sizes and steps, without addresses
  int64_t part_bytes = 0;      ///< of x
  double seconds = 0;          ///< that it is expected to take
};
/// Why the kernels cannot convolve these sizes, or "".
std::string split_conv_obstacle(const ConvSizes& sizes);
/// For sizes without an obstacle.
SplitConvPlan plan_split_conv(const ConvSizes& sizes, SplitConvTileShape tile, int multiprocessors);
/// By the tile that is expected to take the least time.
SplitConvPlan plan_split_conv(const ConvSizes& sizes, int multiprocessors);

/// Whether a plan is expected to be faster than cuDNN in float32 by its own choice of engine.
bool is_split_conv_faster(const ConvSizes& sizes, const SplitConvPlan& plan);
/// Whether there is enough to convolve, of sizes without an obstacle.
bool is_split_conv(const ConvSizes& sizes, DType dtype);
/// Bytes that it takes beside its tensors.
int64_t split_conv_bytes(const ConvSizes& sizes, int multiprocessors);
/// Whether a device can convolve so, and this thread allows it.
bool may_split_conv(const ConvSizes& sizes, DType dtype, Device device);

/// On a GPU of compute capability 9.0, by so many blocks at most. MemoryError where there is no
/// room for the parts, 6 bytes an element of x and w and of the zeros around.
void split_conv_cuda(const Conv& conv, SplitConvPlan plan,
                     int64_t most_blocks = std::numeric_limits<int64_t>::max());

/// The kernels, for their compilation.
jit::TextKernel split_image_kernel(bool is_again);
jit::TextKernel split_conv_kernel(SplitConvTileShape tile);

}  // namespace cuop::kernels
