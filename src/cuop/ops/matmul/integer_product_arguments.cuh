// What the integer product's kernel is given; host and device read the same struct. Steps are in
// elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// No tensor has more.
inline constexpr int kMaxBatchAxes = 32;

/// c <- alpha * a @ b + beta * c for matrices a [rows, depth], b [depth, columns] and c [rows,
/// columns] at every place of a batch. Tiles of c are counted along columns, rows and batch.
struct IntegerProduct {
  const void* a;
  const void* b;
  void* c;
  int64_t rows, columns, depth;
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
  uint64_t alpha, beta;  ///< modulo 2^64; of bool 0 or 1
  int64_t row_tiles, column_tiles, tiles;
  int batch_axes;  ///< at least 1
  int64_t batch_sizes[kMaxBatchAxes];
  int64_t a_batch[kMaxBatchAxes], b_batch[kMaxBatchAxes], c_batch[kMaxBatchAxes];
};

}  // namespace cuop::jit
