// What the kernels of products by tiles are given, and how much shared memory their panels take;
// host and device read the same. Steps are in elements.
#pragma once

#include "cuop/ops/matmul/matrix_vector_arguments.cuh"
#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// c <- alpha * a @ b + beta * c for matrices a [rows, depth], b [depth, columns] and c [rows,
/// columns] at every place of a batch. Tiles of c are counted along columns, rows and batch.
struct TileProduct {
  const void* a;
  const void* b;
  void* c;
  int64_t rows, columns, depth;
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
  Coefficient alpha, beta;
  int64_t row_tiles, column_tiles, tiles;
  Places<3> batch;  ///< of c, a and b
};

/// Bytes of the depth that are in shared memory at a time, for each line of a panel.
inline constexpr int kPanelDepthBytes = 64;
/// The longest access of a thread.
inline constexpr int kAccessBytes = 16;

/// A panel is kept as it lies in memory, in rows along its depth or along its lines. What is left
/// free at the end of a row puts lines that a warp reads together into different banks.
CUOP_FN constexpr int panel_row_bytes(int item_bytes, int tile, bool is_along_depth) {
  return is_along_depth ? kPanelDepthBytes + 16 : tile * item_bytes + 32;
}
CUOP_FN constexpr int panel_bytes(int item_bytes, int tile, bool is_along_depth) {
  return panel_row_bytes(item_bytes, tile, is_along_depth) *
         (is_along_depth ? tile : kPanelDepthBytes / item_bytes);
}

}  // namespace cuop::jit
