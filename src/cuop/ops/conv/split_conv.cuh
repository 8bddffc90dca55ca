// Convolutions of float32 on the matrix units of compute capability 9.0 by parts of the elements,
// as products of these are computed (split_product.cuh): rows are output channels, columns
// positions, and the depth goes through channels and taps. No patches are gathered.
//
// Sums that are not finite, or of elements that no power of two brings near each other, are
// computed again from the elements.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/rectifier.h"
#include "cuop/jit/kernels/stage_pipeline.cuh"
#include "cuop/ops/conv/split_image.cuh"
#include "cuop/ops/matmul/split_sums.cuh"

namespace cuop::jit {

/// The first output channel, and the first group of positions.
struct SplitConvTile {
  int64_t row, group;
};

/// One sum in float32, by its definition. Zeros around x are multiplied like other elements.
CUOP_FN float plain_conv(const SplitConv& p, int64_t channel, const ImagePlace& place) {
  const float* w = p.w + channel * p.channels * p.taps;
  float sum = 0.0f;
  CUOP_ROLLED
  for (int64_t c = 0; c < p.channels && sum == sum; ++c) {
    const int64_t image = int64_t{place.image} * p.channels + c;
    CUOP_ROLLED
    for (int tap = 0; tap < p.taps; ++tap, ++w) {
      const int plane = tap / p.kernel[2];
      const int taps[3] = {plane / p.kernel[1], plane % p.kernel[1], tap % p.kernel[2]};
      bool is_inside = true;
      int64_t offset = image;
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) {
        const int at =
            place.at[axis] * p.stride[axis] + taps[axis] * p.dilation[axis] - p.padding[axis];
        is_inside = is_inside && at >= 0 && at < p.in[axis];
        offset = offset * p.in[axis] + at;
      }
      sum = ::fmaf(is_inside ? p.x[offset] : 0.0f, *w, sum);
    }
  }
  return sum;
}

/// A position of the result: where it is, and the power of two of its image.
struct SplitConvResult {
  ImagePlace place;
  bool is_there;
  int exponent = 0;
  int64_t offset;  ///< in channel 0

  CUOP_FN SplitConvResult(const SplitConv& p, int64_t position)
      : place(image_place(p, static_cast<uint32_t>(position))),
        is_there(position < p.positions),
        offset(place.image * p.out_channels) {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      is_there = is_there && place.at[axis] < p.out[axis];
      offset = offset * p.out[axis] + place.at[axis];
    }
    if (is_there && p.ranges[2 * p.batch] != 0) exponent = image_exponent(p, place.image);
  }
};

/// A warp's sums of all its rows by `Columns` positions, in shared memory: half of them at a time,
/// every second line. Threads have them by lines far apart, and write neighbours.
template <int Columns>
struct SumExchange {
  static constexpr int kLines = 4, kRun = Columns / kSplitGroup;

  float* room;

  /// Where four neighbours are; threads that write or read at once meet different banks.
  CUOP_FN float* four(int row, int line, int quad) const {
    const int place = quad * kLines + line;
    return room + (row * (kLines * kRun / 4) + (place ^ (row % 2 * 4))) * 4;
  }
  CUOP_FN void give(const WarpgroupSums<Columns>& sums, int half) const {
    struct alignas(16) Four {
      float values[4];
    };
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int quad = 0; quad < kRun / 4; ++quad) {
        const int n = quad * 16 + r * 2 + half;
        *reinterpret_cast<Four*>(four(lane / 4 + r * 8, lane % 4, quad)) = {
            sums.values[n], sums.values[n + 4], sums.values[n + 8], sums.values[n + 12]};
      }
    }
  }
  CUOP_FN float sum(int row, int line, int position) const {
    return four(row, line, position / 4)[position % 4];
  }
};

/// Rows of the result that a warp writes.
struct SplitConvRows {
  const SplitConv& p;
  int64_t first;
  int count;

  CUOP_FN SplitConvRows(const SplitConv& all, int64_t row) : p(all), first(row) {
    const int64_t left = p.out_channels - row;
    count = left < kSplitConvWarpRows ? static_cast<int>(left) : kSplitConvWarpRows;
  }

  /// The lines of one half, positions from this group on.
  template <int Columns>
  CUOP_FN void write(const SumExchange<Columns>& exchange, int half, int64_t group) const {
    using Exchange = SumExchange<Columns>;
    constexpr int kRun = Exchange::kRun, kLinesAtOnce = 32 / kRun;
    const int lane = static_cast<int>(threadIdx.x) % 32, at = lane % kRun;
    const int64_t channel_step = int64_t{p.out[0]} * p.out[1] * p.out[2];
#pragma unroll
    for (int start = 0; start < Exchange::kLines; start += kLinesAtOnce) {
      const int line = start + lane / kRun;
      const SplitConvResult to(p, (line * 2 + half) * p.segment + group + at);
      float* const y = p.y + to.offset + first * channel_step;
      if (!to.is_there) continue;
      unsigned plain = 0;  // rows whose sums are computed again
#pragma unroll 4
      for (int row = 0; row < count; ++row) {
        const int exponent = p.weights.exponents[first + row] + to.exponent;
        float sum = exchange.sum(row, line, at);
        if (exponent != 0) {
          sum = exponent > kNotSplit / 2 ? scaled(sum, exponent)
                                         : __builtin_bit_cast(float, 0x7f800000);
        }
        if (!(::fabsf(sum) <= kLargestFloat)) plain |= 1u << row;
        y[row * channel_step] = finished(sum, row);
      }
      CUOP_ROLLED
      for (; plain != 0; plain &= plain - 1) {
        const int row = __ffs(static_cast<int>(plain)) - 1;
        y[row * channel_step] = finished(plain_conv(p, first + row, to.place), row);
      }
    }
  }

 private:
  CUOP_FN float finished(float sum, int row) const {
    if (p.bias != nullptr) sum += p.bias[first + row];
    return p.has_relu ? fn::Relu::apply(sum) : sum;
  }
};

template <int Columns, int RowWarpgroups>
CUOP_FN void convolve_split(const SplitConv& p) {
  using Lines = UnitLines<kSplitGroupBytes>;
  using Sums = WarpgroupSums<Columns>;
  constexpr int kRows = 64 * RowWarpgroups, kGroups = split_conv_groups(Columns, RowWarpgroups);
  constexpr int kBytesOfRows = kRows / kSplitGroup * kSplitGroupBytes;
  constexpr int kBytesOfColumns = kGroups * kSplitGroupBytes;
  constexpr int kStageBytes = kBytesOfRows + kBytesOfColumns;
  constexpr int kStages = split_conv_stages(Columns, RowWarpgroups);
  constexpr int kSpare = split_conv_spare_bytes(Columns);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int row_group = RowWarpgroups == 2 ? warpgroup * (64 / kSplitGroup) : 0;
  const int column_group = RowWarpgroups == 2 ? 0 : warpgroup * (Columns / kSplitGroup);
  Sums sums, total;
#pragma unroll
  for (int n = 0; n < Sums::kCount; ++n) sums.values[n] = total.values[n] = 0.0f;

  const auto place_of = [&](int64_t number) {
    const int64_t columns = quotient(number, p.row_tiles);
    return SplitConvTile{(number - columns * p.row_tiles) * kRows, columns * kGroups};
  };
  const auto bring = [&](const SplitConvTile& tile, unsigned step, unsigned char* room,
                         RowArrival& arrival) {
    const unsigned taps = static_cast<unsigned>(p.taps), channels = step / taps;
    const int64_t rows = step * p.weights.groups + tile.row / kSplitGroup;
    const int64_t columns =
        channels * (p.planes * p.plane_groups) + p.tap_groups[step - channels * taps] + tile.group;
    arrival.expect(kBytesOfRows + kBytesOfColumns);
    arrival.start(room, p.weights.parts + rows * kSplitGroupBytes, kBytesOfRows);
    arrival.start(room + kBytesOfRows, p.parts + columns * kSplitGroupBytes, kBytesOfColumns);
  };
  const auto work = [&](unsigned char* room) {
    add_split_products(sums, total, Lines{room}.from_group(row_group),
                       Lines{room + kBytesOfRows}.from_group(column_group));
  };
  const auto finish = [&](const SplitConvTile& tile) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t row = tile.row + row_group * kSplitGroup + warp % 4 * kSplitConvWarpRows;
    const SplitConvRows rows(p, row);
    unsigned char* const room = room_behind_stages<kStageBytes, kStages, kSpare>() +
                                warp * split_conv_exchange_bytes(Columns);
    SumExchange<Columns> exchange{reinterpret_cast<float*>(room)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      exchange.give(total, half);
      __syncwarp();
      rows.write(exchange, half, tile.group + column_group);
      __syncwarp();  // before the room is used again
    }
#pragma unroll
    for (int n = 0; n < Sums::kCount; ++n) total.values[n] = 0.0f;  // of the next tile
  };
  const auto steps = static_cast<unsigned>(divide_up(p.channels, kSplitDepth) * p.taps);
  run_stages<kStageBytes, kStages, kSpare>(p.tiles, steps, place_of, bring, work, finish);
}

}  // namespace cuop::jit
