// Products of float32 matrices whose elements are split into bfloat16 numbers: what the kernels are
// given; host and device read the same.
#pragma once

#include "cuop/ops/matmul/matmul_arguments.cuh"

namespace cuop::jit {

/// Of an element: x = p0 + p1 + p2 to the last bit.
inline constexpr int kSplitParts = 3;
/// Of the depth, in one step of a product.
inline constexpr int kSplitDepth = 32;
/// Lines that lie together, and the bytes of their parts in one step.
inline constexpr int kSplitGroup = 8;
inline constexpr int kSplitPartBytes = kSplitGroup * kSplitDepth * 2;
inline constexpr int kSplitGroupBytes = kSplitParts * kSplitPartBytes;
/// Rows of a tile; its columns are a choice.
inline constexpr int kSplitRows = 128;
/// Of the blocks that split operands.
inline constexpr int kSplitThreads = 256;
/// In the place of a line's exponent: its sums are computed without parts, or are all NaN.
inline constexpr int kNotSplit = -(1 << 20), kHasNan = 2 * kNotSplit;

/// An operand's parts: bfloat16 numbers of its lines (rows of a, columns of b), times 2^-exponent,
/// [steps of the depth, groups of lines, kSplitParts, kSplitGroup lines as UnitLines has them], for
/// each matrix; and [groups * kSplitGroup] exponents. What is beyond the operand is zero.
struct SplitLines {
  unsigned char* parts;
  int* exponents;
  int64_t groups;
  int64_t part_step, exponent_step;  ///< from one matrix to the next, 0 where all are one
};

/// An operand, a stack of matrices at one stride, and where its parts go.
struct SplitOperand {
  const float* data;
  int64_t lines, depth, line_step, depth_step, matrix_step;
  SplitLines to;
};

/// Blocks of a go before those of b.
struct SplitOperands {
  SplitOperand a, b;
  int64_t blocks_of_a;
};

/// c <- alpha * a @ b + beta * c for a stack of matrices, `tiles` of all of them; `batch` is not
/// read.
struct SplitProduct : TileProduct {
  SplitLines lines_of_a, lines_of_b;
  int64_t a_matrix, b_matrix, c_matrix;  ///< elements from one matrix to the next
};

CUOP_FN constexpr int split_stage_bytes(int columns) {
  return (kSplitRows + columns) / kSplitGroup * kSplitGroupBytes;
}
/// Stages that a multiprocessor's shared memory has room for.
CUOP_FN constexpr int split_stages(int columns) { return columns > 64 ? 4 : 6; }

}  // namespace cuop::jit
