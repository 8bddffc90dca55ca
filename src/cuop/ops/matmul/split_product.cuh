// Products of float32 matrices on the matrix units of compute capability 9.0, at least as accurate
// as sums in float32: of products of the elements' parts (split_sums.cuh).
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/stage_pipeline.cuh"
#include "cuop/ops/matmul/split_sums.cuh"
#include "cuop/ops/matmul/tile_product.cuh"

namespace cuop::jit {

/// A tile: its matrix of the stack, its first row and column.
struct SplitTile {
  int64_t matrix, row, column;
};

template <int Columns>
CUOP_FN SplitTile split_tile(const SplitProduct& p, int64_t number) {
  const TileNumbers tile = numbers_of<16>(number, p.row_tiles, p.column_tiles);
  return {tile.matrix, tile.row * kSplitRows, tile.column * Columns};
}

template <int Columns>
CUOP_FN void multiply_split(const SplitProduct& p) {
  using Lines = UnitLines<kSplitGroupBytes>;
  using Sums = WarpgroupSums<Columns>;
  constexpr int kBytesOfA = kSplitRows / kSplitGroup * kSplitGroupBytes;
  constexpr int kBytesOfB = Columns / kSplitGroup * kSplitGroupBytes;
  const SplitLines &of_a = p.lines_of_a, &of_b = p.lines_of_b;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  Sums sums, total;
#pragma unroll
  for (int n = 0; n < Sums::kCount; ++n) sums.values[n] = total.values[n] = 0.0f;

  const auto place_of = [&](int64_t number) { return split_tile<Columns>(p, number); };
  const auto bring = [&](const SplitTile& tile, unsigned step, unsigned char* room,
                         RowArrival& arrival) {
    const auto part = [&](const SplitLines& lines, int64_t first) {
      return lines.parts + tile.matrix * lines.part_step +
             (step * lines.groups + first / kSplitGroup) * kSplitGroupBytes;
    };
    arrival.expect(kBytesOfA + kBytesOfB);
    arrival.start(room, part(of_a, tile.row), kBytesOfA);
    arrival.start(room + kBytesOfA, part(of_b, tile.column), kBytesOfB);
  };
  const auto work = [&](unsigned char* room) {
    add_split_products(sums, total, Lines{room}.from_group(warpgroup * (64 / kSplitGroup)),
                       Lines{room + kBytesOfA});
  };
  const auto finish = [&](const SplitTile& tile) {
    const int64_t first_row = tile.row + warpgroup * 64;
    const int* const of_rows = of_a.exponents + tile.matrix * of_a.exponent_step + first_row;
    const int* const of_columns = of_b.exponents + tile.matrix * of_b.exponent_step + tile.column;
    float* const c = static_cast<float*>(p.c) + tile.matrix * p.c_matrix;
    const auto alpha = p.alpha.as<float>(), beta = p.beta.as<float>();
    // A thread has two rows, and neighbouring columns.
    const int row_exponents[2] = {of_rows[Sums::row(0)], of_rows[Sums::row(2)]};
    int column_exponents[Sums::kCount / 2];
    bool is_split = row_exponents[0] > kNotSplit && row_exponents[1] > kNotSplit;
    bool is_plain = row_exponents[0] == 0 && row_exponents[1] == 0;
#pragma unroll
    for (int i = 0; i < Sums::kCount / 2; ++i) {
      column_exponents[i] = of_columns[Sums::column(i / 2 * 4 + i % 2)];
      is_split = is_split && column_exponents[i] > kNotSplit;
      is_plain = is_plain && column_exponents[i] == 0;
    }
    if (!is_plain) {
#pragma unroll
      for (int n = 0; n < Sums::kCount; ++n) {
        const int exponent = row_exponents[n / 2 % 2] + column_exponents[n / 4 * 2 + n % 2];
        total.values[n] = scaled(total.values[n], exponent > kNotSplit / 2 ? exponent : 0);
      }
    }
    struct alignas(8) Pair {
      float values[2];
    };
    const auto place = static_cast<int64_t>(reinterpret_cast<uint64_t>(c) / sizeof(float));
    const bool takes_pairs =
        is_split && p.c_column == 1 && beta == 0.0f && ((place | p.c_row | p.columns) & 1) == 0;
#pragma unroll
    for (int n = 0; n < Sums::kCount; n += 2) {
      const int64_t row = first_row + Sums::row(n), column = tile.column + Sums::column(n);
      if (row >= p.rows || column >= p.columns) continue;
      float* const to = c + row * p.c_row + column * p.c_column;
      if (takes_pairs) {
        *reinterpret_cast<Pair*>(to) = {alpha * total.values[n], alpha * total.values[n + 1]};
        continue;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (column + i >= p.columns) continue;
        if (row_exponents[n / 2 % 2] + column_exponents[n / 4 * 2 + i] < kNotSplit / 2) continue;
        store_scaled<float>(to + i * p.c_column, alpha, total.values[n + i], beta);
      }
    }
#pragma unroll
    for (int n = 0; n < Sums::kCount; ++n) total.values[n] = 0.0f;  // of the next tile
    if (__all_sync(0xffffffffu, is_split)) return;
    const float* const whole_a = static_cast<const float*>(p.a) + tile.matrix * p.a_matrix;
    const float* const whole_b = static_cast<const float*>(p.b) + tile.matrix * p.b_matrix;
    CUOP_ROLLED
    for (int n = 0; n < Sums::kCount; ++n) {
      const int64_t row = first_row + Sums::row(n), column = tile.column + Sums::column(n);
      if (row >= p.rows || column >= p.columns) continue;
      const int of_row = of_rows[Sums::row(n)], of_column = of_columns[Sums::column(n)];
      if (of_row > kNotSplit && of_column > kNotSplit) continue;
      const bool has_nan = of_row == kHasNan || of_column == kHasNan;
      const float sum = has_nan ? __builtin_bit_cast(float, 0x7fc00000)
                                : plain_sum<float>(p, whole_a, whole_b, row, column);
      store_scaled<float>(c + row * p.c_row + column * p.c_column, alpha, sum, beta);
    }
  };
  const auto steps = static_cast<unsigned>(divide_up(p.depth, kSplitDepth));
  run_stages<kBytesOfA + kBytesOfB, split_stages(Columns)>(p.tiles, steps, place_of, bring, work,
                                                           finish);
}

}  // namespace cuop::jit
