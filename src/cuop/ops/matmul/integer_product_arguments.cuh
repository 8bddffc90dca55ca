// What the integer product's kernel is given; host and device read the same struct. Steps are in
// elements.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

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
  Places<3> batch;  ///< of c, a and b
};

}  // namespace cuop::jit
