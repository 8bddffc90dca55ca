// Several sweeps of a stencil in one pass over memory: a block keeps a tile in shared memory and
// sweeps it again and again. At the tile's edges neighbours are missing, so that each sweep has
// `Radius` valid cells less on every side; neighbouring tiles overlap by as many and compute those
// cells as well. A cell is the same operations in the same order as in single sweeps.
#pragma once

#include "cuop/jit/kernels/block_copy.cuh"
#include "cuop/ops/stencil/stencil.cuh"

namespace cuop::jit {

/// Where a weight applies.
template <int Row, int Column>
struct At {};

/// Cells of a thread in a tile of the given radius.
template <class T, int Radius>
struct SweepTile {
  static constexpr int kEach = sweep_rows_each(sizeof(T)), kRows = sweep_rows(sizeof(T));
  static constexpr int kPitch = kSweepColumns + 2 * Radius;
  static constexpr int kCells = sweep_cells(sizeof(T), Radius);

  /// Copies the tile whose first cell is (top, left) of the grid, with `Radius` cells around it.
  /// The whole block comes here.
  CUOP_FN static void fill(T* cells, const StencilGrid& grid, int64_t top, int64_t left) {
    constexpr int kBatch = 8;  // accesses of a thread that are on the way together
    top -= Radius;
    left -= Radius;
    const bool is_inside = top >= -grid.halo && left >= 0 && left + kPitch <= grid.width &&
                           top + kRows + 2 * Radius <= grid.height + grid.halo;
    const T* const first = static_cast<const T*>(grid.first) + top * grid.width + left;
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x); begin < kCells;
         begin += kBatch * kSweepThreads) {
      T batch[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int i = begin + k * kSweepThreads;
        if (i >= kCells) continue;
        const int row = i / kPitch, column = i % kPitch;
        batch[k] =
            is_inside ? first[row * grid.width + column] : cell<T>(grid, top + row, left + column);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int i = begin + k * kSweepThreads;
        if (i < kCells) cells[i] = batch[k];
      }
    }
    __syncthreads();
  }
};

template <class T, int Radius, class... Taps>
struct SweptCell;

/// The sum over the taps of a cell, in their order.
template <class T, int Radius, int... Row, int... Column>
struct SweptCell<T, Radius, At<Row, Column>...> {
  CUOP_FN static T at(const T* center, const T* weights) {
    T sum = -T(0);
    int n = 0;
    ((sum = sum + weights[n++] * center[Row * SweepTile<T, Radius>::kPitch + Column]), ...);
    return sum;
  }
};

template <class T, int Radius, class... Taps>
CUOP_FN void stencil_sweeps(const SweepArguments& a) {
  using Tile = SweepTile<T, Radius>;
  constexpr int kTaps = static_cast<int>(sizeof...(Taps)), kEach = Tile::kEach;
  const StencilGrid& grid = a.grid;
  const int sweeps = static_cast<int>(a.sweeps), edge = Radius * (sweeps - 1);
  const int rows = Tile::kRows - 2 * edge, columns = kSweepColumns - 2 * edge;  // of the result
  const int64_t across = (grid.width + columns - 1) / columns;
  const int64_t tiles = across * ((grid.height + rows - 1) / rows);
  const int row = static_cast<int>(threadIdx.x) / kSweepColumns * kEach;
  const int column = static_cast<int>(threadIdx.x) % kSweepColumns;
  T* const cells = reinterpret_cast<T*>(block_room<Tile::kCells* int(sizeof(T))>());
  T* const mine = cells + (row + Radius) * Tile::kPitch + column + Radius;
  T weights[kTaps];
#pragma unroll
  for (int n = 0; n < kTaps; ++n) weights[n] = *reinterpret_cast<const T*>(a.weight[n]);
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t above = quotient(tile, across);
    const int64_t top = above * rows - edge, left = (tile - above * across) * columns - edge;
    Tile::fill(cells, grid, top, left);
    const int64_t place = left + column;
    const bool is_column = grid.is_periodic != 0 || (place >= 0 && place < grid.width);
    const bool is_inner = is_column && top >= a.first && top + Tile::kRows <= a.last;
    T sums[kEach];
#pragma unroll 1
    for (int sweep = 1;; ++sweep) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        sums[j] = SweptCell<T, Radius, Taps...>::at(mine + j * Tile::kPitch, weights);
      }
      if (sweep == sweeps) break;
      if (!is_inner) {  // beyond its ends the grid stays zero
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          const int64_t at = top + row + j;
          if (!is_column || at < a.first || at >= a.last) sums[j] = T(0);
        }
      }
      __syncthreads();  // all cells have been read
#pragma unroll
      for (int j = 0; j < kEach; ++j) mine[j * Tile::kPitch] = sums[j];
      __syncthreads();
    }
    const bool is_mine = column >= edge && column < edge + columns && place < grid.width;
    T* const to = static_cast<T*>(a.out) + (top + row) * grid.width + place;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const bool is_row = row + j >= edge && row + j < edge + rows && top + row + j < grid.height;
      if (is_mine && is_row) to[j * grid.width] = sums[j];
    }
    __syncthreads();  // before the next tile comes
  }
}

}  // namespace cuop::jit
