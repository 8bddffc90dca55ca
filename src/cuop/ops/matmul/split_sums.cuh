// Sums of products of elements that are split into three bfloat16 numbers (split_operand.cuh): of
// nine products the six largest are added up, what is left being below 2^-24 of the whole.
//
// The units cut their sums off where float32 arithmetic rounds. So they add up 32 of the depth
// alone, small products before large ones, and threads add these sums in float32.
#pragma once

#include "cuop/ops/matmul/split_operand.cuh"

namespace cuop::jit {

/// sum * 2^exponent without leaving float32's range on the way.
CUOP_FN float scaled(float sum, int exponent) {
  const int first = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
  return sum * power_of_two(first) * power_of_two(exponent - first);
}

/// total += a @ b^T of one step of the depth; `sums` is the units' room.
template <int Columns>
CUOP_FN void add_split_products(WarpgroupSums<Columns>& sums, WarpgroupSums<Columns>& total,
                                UnitLines<kSplitGroupBytes> a, UnitLines<kSplitGroupBytes> b) {
  using Lines = UnitLines<kSplitGroupBytes>;
  // The smallest first: part i of a by part j of b.
  constexpr int kPairs[6][2] = {{0, 2}, {2, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}};
  begin_unit_products(sums);
#pragma unroll
  for (int pair = 0; pair < 6; ++pair) {
    const Lines part_of_a{a.first + kPairs[pair][0] * kSplitPartBytes};
    const Lines part_of_b{b.first + kPairs[pair][1] * kSplitPartBytes};
#pragma unroll
    for (int depth = 0; depth < kSplitDepth; depth += 16) {
      add_unit_products(sums, part_of_a, part_of_b, depth, pair + depth > 0);
    }
  }
  end_unit_products(sums);
#pragma unroll
  for (int n = 0; n < sums.kCount; ++n) total.values[n] += sums.values[n];
}

}  // namespace cuop::jit
