// What the kernels of products are given, and how much shared memory the panels of tiles take; host
// and device read the same. Steps are in elements.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// alpha or beta in every form that a sum may need.
struct Coefficient {
  double real, imag;
  uint64_t bits;  ///< modulo 2^64; of bool 0 or 1

  template <class Sum>
  CUOP_FN Sum as() const {
    if constexpr (is_complex_type<Sum>) {
      using R = RealType<Sum>;
      return {static_cast<R>(real), static_cast<R>(imag)};
    } else if constexpr (is_float_type<Sum>) {
      return static_cast<Sum>(real);
    } else {
      return static_cast<Sum>(bits);
    }
  }
};

/// Matrices a [rows, depth], b [depth, columns] and c [rows, columns] at every place of a batch.
/// Tiles of c are counted along columns, rows and batch.
struct ProductMatrices {
  const void* a;
  const void* b;
  void* c;
  int64_t rows, columns, depth;
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
  int64_t row_tiles, column_tiles, tiles;
  Places<3> batch;  ///< of c, a and b
};

/// c <- alpha * a @ b + beta * c.
struct TileProduct : ProductMatrices {
  Coefficient alpha, beta;
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

/// Threads along each side of a tile, and of a block.
inline constexpr int kProductSide = 16, kProductThreads = kProductSide * kProductSide;

/// c <- alpha * a @ b + beta * c of integers.
struct IntegerProduct : ProductMatrices {
  uint64_t alpha, beta;  ///< modulo 2^64; of bool 0 or 1
};

/// y <- alpha * a @ x + beta * y for matrices a of `height` rows; their rows are counted together,
/// `steps` accesses of one or more columns each.
struct MatrixVector {
  const void* a;
  const void* x;
  void* y;
  int64_t rows, height, steps;
  int64_t a_row, a_column, x_step, y_step;
  int64_t a_batch, x_batch, y_batch;  ///< from one matrix to the next
  Coefficient alpha, beta;
  int64_t piece;  ///< steps of one block
  void* partials;
  unsigned* arrivals;
};

}  // namespace cuop::jit
