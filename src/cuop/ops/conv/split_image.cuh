// Splits the images of a convolution into parts (split_conv_arguments.cuh), and finds each image's
// range. Where an image has magnitudes whose parts or products would not be exact, all images are
// split again, by a second launch, and multiplied by their powers of two.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/ops/conv/split_conv_arguments.cuh"
#include "cuop/ops/matmul/split_operand.cuh"
#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// A position of a plane, image by image.
struct ImagePlace {
  uint32_t image;
  int at[3];
};
CUOP_FN ImagePlace image_place(const SplitConv& p, uint32_t position) {
  ImagePlace place;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const uint32_t left = quotient(position, p.extent[axis]);
    place.at[axis] = static_cast<int>(position - left * p.extent[axis].by);
    position = left;
  }
  place.image = position;
  return place;
}

/// Of the power of two that an image's elements have been divided by, or kNotSplit.
CUOP_FN int image_exponent(const SplitConv& p, int64_t image) {
  const unsigned most = p.ranges[2 * image], least = ~p.ranges[2 * image + 1];
  if (most == 0) return 0;
  return LineRange{__builtin_bit_cast(float, least), __builtin_bit_cast(float, most), true, false}
      .exponent();
}

/// Of finite elements: sums that meet others are computed from the elements themselves.
CUOP_FN void note_range(const SplitConv& p, const LineRange& range, int64_t image) {
  if (range.most == 0.0f) return;
  atomicMax(p.ranges + 2 * image, __builtin_bit_cast(unsigned, range.most));
  atomicMax(p.ranges + 2 * image + 1, ~__builtin_bit_cast(unsigned, range.least));
  if (!range.is_plain()) atomicOr(p.ranges + 2 * p.batch, 1u);
}

CUOP_FN void note_ranges(const SplitConv& p, LineRange range, uint32_t image) {
  const uint32_t first = __shfl_sync(0xffffffffu, image, 0);
  if (__all_sync(0xffffffffu, image == first) == 0) return note_range(p, range, image);
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    range.least = ::fminf(range.least, __shfl_xor_sync(0xffffffffu, range.least, apart));
    range.most = ::fmaxf(range.most, __shfl_xor_sync(0xffffffffu, range.most, apart));
  }
  if (threadIdx.x % 32 == 0) note_range(p, range, image);
}

/// Warps have the lines of the groups, lanes the groups, so that they read neighbours.
template <bool IsAgain>
CUOP_FN void split_image(const SplitConv& p) {
  static_assert(kSplitThreads == 32 * kSplitGroup && kImageGroups == 32);
  if constexpr (IsAgain) {
    if (p.ranges[2 * p.batch] == 0) return;
  }
  unsigned char* const room = block_room<kImageBytes>();
  const int line = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t volume = int64_t{p.in[0]} * p.in[1] * p.in[2];
  const int64_t blocks = quotient(p.plane_groups, kImageGroups);
  const int64_t units = divide_up(p.channels, kSplitDepth) * p.planes * blocks;
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t plane_of_all = quotient(unit, blocks), step = quotient(plane_of_all, p.planes);
    const auto plane = static_cast<int>(plane_of_all - step * p.planes);
    const int64_t first = (unit - plane_of_all * blocks) * kImageGroups;
    const int64_t position = line * p.segment + first + lane;
    const ImagePlace place = image_place(p, static_cast<uint32_t>(position));
    bool is_there = position < p.positions;
    int64_t offset = is_there ? place.image * p.channels + step * kSplitDepth : 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      const int at = place.at[axis] * p.stride[axis] + p.plane_start[plane][axis];
      is_there = is_there && at >= 0 && at < p.in[axis];
      offset = offset * p.in[axis] + at;
    }
    const float* const from = p.x + (is_there ? offset : 0);
    const int64_t left = p.channels - step * kSplitDepth;
    float x[kSplitDepth];
#pragma unroll
    for (int i = 0; i < kSplitDepth; ++i) x[i] = is_there && i < left ? from[i * volume] : 0.0f;
    float factor = 1.0f;
    if constexpr (IsAgain) {
      const int exponent = is_there ? image_exponent(p, place.image) : 0;
      factor = exponent <= kNotSplit ? 0.0f : power_of_two(-exponent);
    } else {
      LineRange range = LineRange::none();
#pragma unroll
      for (int i = 0; i < kSplitDepth; ++i) {
        if (::fabsf(x[i]) <= kLargestFloat) range.take(x[i]);
      }
      note_ranges(p, range, position < p.positions ? place.image : 0);
    }
#pragma unroll
    for (int depth = 0; depth < kSplitDepth; depth += 8) {
      const float eight[8] = {x[depth],     x[depth + 1], x[depth + 2], x[depth + 3],
                              x[depth + 4], x[depth + 5], x[depth + 6], x[depth + 7]};
      write_parts(room + lane * kImageGroupBytes, line, depth, eight, factor);
    }
    __syncthreads();
    unsigned char* const to =
        p.parts + (plane_of_all * p.plane_groups + first) * int64_t{kSplitGroupBytes};
    constexpr int kPieces = kSplitGroupBytes / 16;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kImageGroups * kPieces; i += kSplitThreads) {
      const int group = i / kPieces, piece = i - group * kPieces;
      *reinterpret_cast<Word16*>(to + int64_t{i} * 16) =
          *reinterpret_cast<const Word16*>(room + group * kImageGroupBytes + piece * 16);
    }
    __syncthreads();  // before the next groups
  }
}

}  // namespace cuop::jit
