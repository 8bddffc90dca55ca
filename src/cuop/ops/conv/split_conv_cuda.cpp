// Convolutions of float32 by parts: how x is laid out, where they pay, and the kernels' launch.
#include <algorithm>
#include <array>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/library_use.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/kernels/stage_sizes.cuh"
#include "cuop/ops/conv/split_conv_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop::kernels {

namespace {

using Axes = ConvSizes::Axes;

constexpr int64_t kDepth = jit::kSplitDepth;

/// Where the elements that a tap meets are: x[position * stride + start + shift * stride].
struct AxisTap {
  int64_t start, shift;
};
AxisTap axis_tap(const ConvSizes& s, size_t axis, int64_t tap) {
  const int64_t ahead = tap * s.dilation[axis];
  return {ahead % s.stride[axis] - s.padding[axis], ahead / s.stride[axis]};
}

/// Positions along an axis, so many that a tap which leaves them at their end finds zeros at their
/// beginning, where it found them before: one row of zeros serves two rows.
int64_t extent_of(const ConvSizes& s, size_t axis) {
  int64_t extent = s.out[axis];
  for (int64_t tap = 0; tap < s.kernel[axis]; ++tap) {
    const auto [start, shift] = axis_tap(s, axis, tap);
    const int64_t before = divide_up(std::max<int64_t>(-start, 0), s.stride[axis]);
    const int64_t end = divide_up(std::max<int64_t>(s.in[axis] - start, 0), s.stride[axis]);
    extent = std::max({extent, before, end, s.out[axis] + shift - before});
  }
  return extent;
}

/// Seconds of the product's turns, each of whose tiles has its steps and its end.
double turn_seconds(const jit::SplitConv& p, SplitConvTileShape tile, int multiprocessors) {
  constexpr double kEnd = 4e-6;
  const auto turns = static_cast<double>(divide_up(p.tiles, int64_t{multiprocessors}));
  const auto steps = static_cast<double>(divide_up(p.channels, kDepth) * p.taps);
  return turns * (steps * split_step_seconds(tile.columns) + kEnd);
}

double elements_of(const ConvSizes& s) {
  return static_cast<double>(s.batch * s.in_channels) *
         static_cast<double>(ConvSizes::volume(s.in));
}
double results_of(const ConvSizes& s) {
  return static_cast<double>(s.batch * s.out_channels) *
         static_cast<double>(ConvSizes::volume(s.out));
}
double products_of(const ConvSizes& s) {
  return results_of(s) * static_cast<double>(s.group_in()) *
         static_cast<double>(ConvSizes::volume(s.kernel));
}

}  // namespace

std::string split_conv_obstacle(const ConvSizes& s) {
  if (s.groups != 1) return cat("'split' has no groups, these are ", s.groups);
  const int64_t taps = ConvSizes::volume(s.kernel);
  if (taps > jit::kMostSplitTaps) {
    return cat("'split' has at most ", jit::kMostSplitTaps, " taps of the kernel, these are ",
               taps);
  }
  if (s.batch == 0 || s.in_channels == 0 || ConvSizes::volume(s.in) == 0) return "x is empty";
  // Positions and elements' places along an axis are numbers of 32 bits.
  constexpr double kMost = 1 << 30;
  double positions = static_cast<double>(s.batch), further = 1;
  for (size_t i = 0; i < 3; ++i) {
    const double size =
        std::max({static_cast<double>(s.in[i]) + 2.0 * static_cast<double>(s.padding[i]),
                  static_cast<double>(s.kernel[i]) * static_cast<double>(s.dilation[i])});
    if (size > kMost) return "'split' has axes of at most 2^30 elements";
    positions *= size + 4;
    further *= size + 4;
  }
  if (positions + 16 * further > kMost) return "'split' has at most 2^30 positions";
  return "";
}

namespace {

/// Where the elements of x go, whatever the tiles.
SplitConvPlan laid_out(const ConvSizes& s) {
  SplitConvPlan plan;
  jit::SplitConv& p = plan.arguments;
  p.batch = s.batch;
  p.channels = s.in_channels;
  p.out_channels = s.out_channels;
  p.positions = s.batch;
  Axes extent{};
  for (size_t i = 0; i < 3; ++i) {
    p.in[i] = static_cast<int>(s.in[i]);
    p.kernel[i] = static_cast<int>(s.kernel[i]);
    p.out[i] = static_cast<int>(s.out[i]);
    p.stride[i] = static_cast<int>(s.stride[i]);
    p.padding[i] = static_cast<int>(s.padding[i]);
    p.dilation[i] = static_cast<int>(s.dilation[i]);
    extent[i] = extent_of(s, i);
    p.extent[i] = jit::make_divisor(static_cast<uint32_t>(extent[i]));
    p.positions *= extent[i];
  }
  const Axes step{extent[1] * extent[2], extent[2], 1};
  // Each tap's plane, one for all taps that meet the same elements, and how far it goes there.
  std::array<int64_t, jit::kMostSplitTaps> shifts{}, planes{};
  for (int64_t z = 0; z < s.kernel[0]; ++z) {
    for (int64_t y = 0; y < s.kernel[1]; ++y) {
      for (int64_t x = 0; x < s.kernel[2]; ++x, ++p.taps) {
        const int64_t taps[3] = {z, y, x};
        int start[3];
        int64_t shift = 0;
        for (size_t i = 0; i < 3; ++i) {
          const AxisTap tap = axis_tap(s, i, taps[i]);
          start[i] = static_cast<int>(tap.start);
          shift += tap.shift * step[i];
        }
        int plane = 0;
        while (plane < p.planes && !std::equal(start, start + 3, p.plane_start[plane])) ++plane;
        if (plane == p.planes) std::copy_n(start, 3, p.plane_start[p.planes++]);
        shifts[static_cast<size_t>(p.taps)] = shift;
        planes[static_cast<size_t>(p.taps)] = plane;
      }
    }
  }
  const int64_t furthest = *std::max_element(shifts.begin(), shifts.begin() + p.taps);
  // Segments are whole tiles of every shape.
  p.segment =
      round_up(divide_up(p.positions, int64_t{jit::kSplitGroup}), int64_t{jit::kImageGroups});
  p.plane_groups = round_up(p.segment + furthest, int64_t{jit::kImageGroups});
  for (size_t tap = 0; tap < static_cast<size_t>(p.taps); ++tap) {
    p.tap_groups[tap] = planes[tap] * p.plane_groups + shifts[tap];
  }
  plan.part_bytes =
      divide_up(s.in_channels, kDepth) * p.planes * p.plane_groups * jit::kSplitGroupBytes;
  return plan;
}

void take_tile(SplitConvPlan& plan, SplitConvTileShape tile, int multiprocessors) {
  jit::SplitConv& p = plan.arguments;
  plan.tile = tile;
  const int64_t groups = jit::split_conv_groups(tile.columns, tile.row_warpgroups);
  p.row_tiles = divide_up(p.out_channels, int64_t{64} * tile.row_warpgroups);
  p.tiles = p.row_tiles * divide_up(p.segment, groups);
  // Splitting reads what it writes two thirds of; weights are brought into order before; five
  // kernels are begun.
  constexpr double kSplitRate = 2.2e12, kWeightRate = 6e10, kStart = 2e-5;
  const auto weights = static_cast<double>(p.out_channels * p.channels * p.taps);
  plan.seconds = static_cast<double>(plan.part_bytes) * (5.0 / 3) / kSplitRate +
                 weights / kWeightRate + kStart + turn_seconds(p, tile, multiprocessors);
}

}  // namespace

SplitConvPlan plan_split_conv(const ConvSizes& sizes, SplitConvTileShape tile,
                              int multiprocessors) {
  SplitConvPlan plan = laid_out(sizes);
  take_tile(plan, tile, multiprocessors);
  return plan;
}

SplitConvPlan plan_split_conv(const ConvSizes& sizes, int multiprocessors) {
  SplitConvPlan plan = laid_out(sizes);
  SplitConvTileShape best = kSplitConvTiles[0];
  double least = std::numeric_limits<double>::infinity();
  for (const SplitConvTileShape tile : kSplitConvTiles) {
    take_tile(plan, tile, multiprocessors);
    if (plan.seconds < least) best = tile;
    least = std::min(least, plan.seconds);
  }
  take_tile(plan, best, multiprocessors);
  return plan;
}

bool is_split_conv_faster(const ConvSizes& s, const SplitConvPlan& plan) {
  // cuDNN's, measured on H100s: 42 TFLOP/s, the bytes of x and y behind it. Engines that transform
  // tiles of 3 x 3 (Winograd's algorithm) reach 76, which it does not choose by itself.
  constexpr double kLibraryRate = 4.2e13, kByteRate = 3e12, kLibraryStart = 1e-5, kSurely = 0.93;
  const double library = std::max(2 * products_of(s) / kLibraryRate,
                                  4 * (results_of(s) + elements_of(s)) / kByteRate) +
                         kLibraryStart;
  return plan.seconds < kSurely * library;
}

bool is_split_conv(const ConvSizes& sizes, DType dtype) {
  // Less than cuDNN computes while our kernels are begun.
  constexpr double kFewestProducts = 2.5e8;
  return dtype == DType::kFloat32 && products_of(sizes) > kFewestProducts &&
         split_conv_obstacle(sizes).empty();
}

bool may_split_conv(const ConvSizes& sizes, DType dtype, Device device) {
  return prefers_split_products(device) && is_split_conv(sizes, dtype);
}

int64_t split_conv_bytes(const ConvSizes& s, int multiprocessors) {
  const int64_t depth = round_up(s.in_channels, kDepth) * ConvSizes::volume(s.kernel);
  const int64_t copies = s.in_channels % kDepth != 0 ? 2 : 1;  // with zeros, and in order
  const int64_t weights = copies * s.out_channels * depth * itemsize(DType::kFloat32);
  const int64_t ranges = (2 * s.batch + 1) * itemsize(DType::kUInt32);
  return weights + parts_bytes(s.out_channels, depth, 1) + ranges +
         plan_split_conv(s, multiprocessors).part_bytes;
}

jit::TextKernel split_image_kernel(bool is_again) {
  return {"conv split",       "cuop/ops/conv/split_image.cuh",
          "SplitConv",        jit::instance("split_image", is_again),
          jit::kSplitThreads, is_again ? 1 : 3,
          jit::kImageBytes};
}

jit::TextKernel split_conv_kernel(SplitConvTileShape tile) {
  return {"conv bf16x6",
          "cuop/ops/conv/split_conv.cuh",
          "SplitConv",
          jit::instance("convolve_split", tile.columns, tile.row_warpgroups),
          jit::kPipelineThreads,
          1,
          jit::pipeline_bytes(jit::split_conv_stage_bytes(tile.columns, tile.row_warpgroups),
                              jit::split_conv_stages(tile.columns, tile.row_warpgroups),
                              jit::split_conv_spare_bytes(tile.columns))};
}

namespace {

/// w [out channels, channels, taps] as rows of the depth: 32 channels, zeros among them, then taps.
Tensor weight_rows(const Conv& conv) {
  const ConvSizes& s = conv.sizes;
  const int64_t taps = ConvSizes::volume(s.kernel), steps = divide_up(s.in_channels, kDepth);
  const Tensor w = reshape(conv.w, {s.out_channels, s.in_channels, taps});
  Tensor whole = w;
  if (s.in_channels % kDepth != 0) {
    whole = zeros({s.out_channels, steps * kDepth, taps}, DType::kFloat32, w.device());
    copy_into(slice(whole, 1, 0, s.in_channels), w);
  }
  const Tensor split = reshape(whole, {s.out_channels, steps, kDepth, taps});
  return reshape(contiguous(swap_axes(split, 2, 3)), {s.out_channels, steps * taps * kDepth});
}

}  // namespace

void split_conv_cuda(const Conv& conv, SplitConvPlan plan, int64_t most_blocks) {
  const Device device = conv.y.device();
  const Tensor rows = weight_rows(conv);
  const SplitStack weights = room_for_parts(MatrixStack::of(rows, 0, 1, 0));
  const Tensor parts = empty({plan.part_bytes}, DType::kUInt8, device);
  const Tensor ranges = zeros({2 * conv.sizes.batch + 1}, DType::kUInt32, device);
  jit::SplitConv& p = plan.arguments;
  p.x = conv.x.data<float>();
  p.w = conv.w.data<float>();
  p.bias = conv.bias.is_defined() ? conv.bias.data<float>() : nullptr;
  p.y = conv.y.data<float>();
  p.has_relu = conv.activation == ConvActivation::kRelu;
  p.weights = weights.lines;
  p.parts = parts.data<uint8_t>();
  p.ranges = ranges.data<uint32_t>();
  const int64_t together = backend::cuda::cuda_runtime(device).properties().multiprocessors;
  const int64_t units = plan.part_bytes / (jit::kImageGroups * jit::kSplitGroupBytes);
  constexpr int64_t kAgain = 4;  // blocks of a multiprocessor, most often for nothing
  split_stack(weights);
  jit::launch_text(split_image_kernel(false), device, std::min(units, most_blocks), &p);
  jit::launch_text(split_image_kernel(true), device,
                   std::min({units, kAgain * together, most_blocks}), &p);
  jit::launch_text(split_conv_kernel(plan.tile), device, std::min({p.tiles, together, most_blocks}),
                   &p);
  backend::note_matrix_units(kSplitPrecision);
}

}  // namespace cuop::kernels
