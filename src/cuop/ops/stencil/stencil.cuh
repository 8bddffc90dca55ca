// Stencils and Jacobi's method on a GPU: the operations of the CPU in their order, so that cells
// are the same bits there and here, in the whole grid and in a block of its rows.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/places.cuh"
#include "cuop/ops/stencil/stencil_arguments.cuh"

namespace cuop::jit {

CUOP_FN int64_t wrapped_index(int64_t index, int64_t size) {
  const int64_t rest = index % size;
  return rest < 0 ? rest + size : rest;
}

/// The cell at any place: of the halo, wrapped around, or 0.
template <class T>
CUOP_FN T cell(const StencilGrid& grid, int64_t row, int64_t column) {
  const bool is_column = column >= 0 && column < grid.width;
  const bool is_row = row >= -grid.halo && row < grid.height + grid.halo;
  if (!is_row || !is_column) {
    if (grid.is_periodic == 0) return T(0);
    if (!is_row) row = wrapped_index(row, grid.height);
    if (!is_column) column = wrapped_index(column, grid.width);
  }
  return static_cast<const T*>(grid.first)[row * grid.pitch + column];
}

template <class T>
CUOP_FN T weight_of(const StencilTap& tap) {
  return *reinterpret_cast<const T*>(tap.weight);
}

/// What a sum begins with where nothing was added before: -0 + x is x, zeros with their signs too.
template <class T>
CUOP_FN T start_of(const StencilArguments& a) {
  return a.taps > 0 ? -T(0) : T(0);
}

/// The cells of a tile and of its surroundings in shared memory.
template <class T>
class StencilTile {
 public:
  static constexpr int kRows = stencil_rows(sizeof(T));
  static constexpr int kPitch = kStencilColumns + 2 * kStencilReach;

  /// In memory for [kRows + 2 kStencilReach][kPitch] cells.
  CUOP_FN explicit StencilTile(T* memory) : cells_(memory) {}

  /// From the row `reach` above the tile's first. The whole block comes here.
  CUOP_FN void fill(const StencilGrid& grid, int64_t first_row, int64_t first_column, int reach) {
    const int64_t top = first_row - reach, left = first_column - kStencilReach;
    const int rows = kRows + 2 * reach;
    const bool is_inside = top >= -grid.halo && top + rows <= grid.height + grid.halo &&
                           left >= 0 && left + kPitch <= grid.width;
    const bool is_aligned =
        grid.pitch % kPack == 0 && reinterpret_cast<uint64_t>(grid.first) % 16 == 0;
    const bool has_whole_packs = grid.is_periodic == 0 && grid.width % kPack == 0;
    if (is_aligned && (is_inside || has_whole_packs)) {
      fill_by_packs(grid, top, left, rows * kPacks);
    } else {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < rows * kPitch; i += kStencilThreads) {
        cells_[i] = cell<T>(grid, top + i / kPitch, left + i % kPitch);
      }
    }
    __syncthreads();
  }

 private:
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T)), kPacks = kPitch / kPack;
  static constexpr int kBatch = 5;  ///< accesses of a thread that are on the way together

  T* cells_;

  /// A pack lies in the grid or outside of it, where cells are 0.
  CUOP_FN void fill_by_packs(const StencilGrid& grid, int64_t top, int64_t left, int packs) {
    const T* const first = static_cast<const T*>(grid.first);
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x); begin < packs;
         begin += kBatch * kStencilThreads) {
      T batch[kBatch][kPack];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int i = begin + k * kStencilThreads;
        const int64_t row = top + i / kPacks, column = left + i % kPacks * kPack;
        const bool is_there = i < packs && row >= -grid.halo && row < grid.height + grid.halo &&
                              column >= 0 && column < grid.width;
#pragma unroll
        for (int j = 0; j < kPack; ++j) batch[k][j] = T(0);
        if (is_there) load_pack(batch[k], first + row * grid.pitch + column);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int i = begin + k * kStencilThreads;
        if (i < packs) store_pack(cells_ + i * kPack, batch[k]);
      }
    }
  }
};

/// Taps that reach at most kStencilReach cells far: a tile is read once, and each weight once for
/// all cells of a thread. IsFirst: nothing was added to the results before.
template <class T, bool IsFirst>
CUOP_FN void stencil_tiles(const StencilArguments& a) {
  using Tile = StencilTile<T>;
  constexpr int kEach = stencil_rows_each(sizeof(T));
  const StencilGrid& grid = a.grid;
  const int64_t across = tiles_in_a_row(a.out, kStencilColumns);
  const int64_t tiles = across * divide_up(grid.height, Tile::kRows);
  const int reach = static_cast<int>(a.row_radius), taps = static_cast<int>(a.taps);
  const int row = static_cast<int>(threadIdx.x) / kStencilColumns * kEach;
  const int column = static_cast<int>(threadIdx.x) % kStencilColumns;
  alignas(16) __shared__ T cells[(Tile::kRows + 2 * kStencilReach) * Tile::kPitch];
  const T* const mine = cells + (row + reach) * Tile::kPitch + column + kStencilReach;
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t above = quotient(tile, across);
    const int64_t first_row = above * Tile::kRows;
    const int64_t first_column = a.out.first_tile + (tile - above * across) * kStencilColumns;
    Tile(cells).fill(grid, first_row, first_column, reach);
    const int64_t left = grid.height - first_row - row;  // rows of the grid from the thread's first
    const int64_t at = first_column + column;
    const bool is_column = at >= a.out.begin && at < a.out.end;
    const int count = !is_column || left <= 0 ? 0 : left < kEach ? static_cast<int>(left) : kEach;
    T* to = static_cast<T*>(a.out.first) + (first_row + row) * a.out.pitch + at;
    T sums[kEach];
    const T* before = to;
#pragma unroll
    for (int j = 0; j < kEach; ++j, before += a.out.pitch) {
      sums[j] = IsFirst || j >= count ? start_of<T>(a) : *before;
    }
#pragma unroll 1
    for (int n = 0; n < taps; ++n) {
      const T weight = weight_of<T>(a.tap[n]);
      const T* const near = mine + a.tap[n].row * Tile::kPitch + a.tap[n].column;
#pragma unroll
      for (int j = 0; j < kEach; ++j) sums[j] = sums[j] + weight * near[j * Tile::kPitch];
    }
    if (count == kEach) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) to[j * a.out.pitch] = sums[j];
    } else {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (j < count) to[j * a.out.pitch] = sums[j];
      }
    }
    __syncthreads();  // the cells have been read
  }
}

/// Taps that reach any distance.
template <class T, bool IsFirst>
CUOP_FN void stencil_cells(const StencilArguments& a) {
  const StencilGrid& grid = a.grid;
  const int64_t width = a.out.end - a.out.begin;
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * kStencilThreads + threadIdx.x; i < grid.height * width;
       i += int64_t(gridDim.x) * kStencilThreads) {
    const int64_t row = quotient(i, width), column = a.out.begin + i - row * width;
    T& out = static_cast<T*>(a.out.first)[row * a.out.pitch + column];
    T sum = IsFirst ? start_of<T>(a) : out;
#pragma unroll 4
    for (int64_t n = 0; n < a.taps; ++n) {
      const StencilTap& tap = a.tap[n];
      sum = sum + weight_of<T>(tap) * cell<T>(grid, row + tap.row, column + tap.column);
    }
    out = sum;
  }
}

/// A block takes whole rows, so that each row's norm is summed in one order.
template <class T, bool IsResidual>
CUOP_FN void jacobi_rows(const JacobiArguments& a) {
  Agreement<kStencilThreads, double> agreed;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.grid.height; row += gridDim.x) {
    double norm = 0;
#pragma unroll 1
    for (int64_t column = a.out.begin + threadIdx.x; column < a.out.end;
         column += kStencilThreads) {
      const T center = static_cast<const T*>(a.grid.first)[row * a.grid.pitch + column];
      const T rhs = static_cast<const T*>(a.rhs.first)[row * a.rhs.pitch + column];
      const T north = cell<T>(a.grid, row - 1, column), south = cell<T>(a.grid, row + 1, column);
      const T west = cell<T>(a.grid, row, column - 1), east = cell<T>(a.grid, row, column + 1);
      if constexpr (IsResidual) {
        const double sum = (double(north) + double(south)) + (double(west) + double(east));
        const double rest = double(rhs) - (sum - 4.0 * double(center)) * a.factor;
        norm += rest * rest;
      } else {
        const T next =
            (((north + south) + (west + east)) - static_cast<T>(a.factor) * rhs) * T(0.25);
        static_cast<T*>(a.out.first)[row * a.out.pitch + column] = next;
        const double update = static_cast<double>(next - center);
        if (column >= a.counted.first && column < a.counted.last) norm += update * update;
      }
    }
    if (a.norms == nullptr) continue;
    norm = agreed(norm, Total{});
    if (threadIdx.x == 0) a.norms[row] = norm;
  }
}

}  // namespace cuop::jit
