// Stencils and Jacobi's method on a GPU: the operations of the CPU in their order, so that cells
// are the same bits there and here, in the whole grid and in a block of its rows.
#pragma once

#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/places.cuh"
#include "cuop/ops/stencil/stencil_arguments.cuh"

namespace cuop::jit {

inline constexpr int kStencilThreads = 256;
inline constexpr int kStencilColumns = 64;  ///< of a block's tile
inline constexpr int kStencilRowsEach = 4;  ///< of a thread, one below the other
inline constexpr int kStencilRows = kStencilThreads / kStencilColumns * kStencilRowsEach;

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
  return static_cast<const T*>(grid.first)[row * grid.width + column];
}

template <class T>
CUOP_FN T weight_of(const StencilTap& tap) {
  return *reinterpret_cast<const T*>(tap.weight);
}

/// Whether all that a tile's cells need lies in the grid and its halo.
CUOP_FN bool is_inside(const StencilArguments& a, int64_t first_row, int64_t first_column) {
  const int64_t last_row = first_row + kStencilRows, last_column = first_column + kStencilColumns;
  return first_row - a.row_radius >= -a.grid.halo && last_row <= a.grid.height &&
         last_row + a.row_radius <= a.grid.height + a.grid.halo &&
         first_column - a.column_radius >= 0 && last_column + a.column_radius <= a.grid.width;
}

/// The sums of a thread of a tile that is inside; each weight is read once for all of them.
template <class T>
CUOP_FN void stencil_inside(const StencilArguments& a, T start, int64_t at) {
  const int64_t width = a.grid.width;
  const T* const from = static_cast<const T*>(a.grid.first) + at;
  T* const to = static_cast<T*>(a.out) + at;
  T sums[kStencilRowsEach];
#pragma unroll
  for (int j = 0; j < kStencilRowsEach; ++j) sums[j] = a.is_first != 0 ? start : to[j * width];
#pragma unroll 1
  for (int64_t n = 0; n < a.taps; ++n) {
    const T weight = weight_of<T>(a.tap[n]);
    const T* const near = from + a.tap[n].offset;
#pragma unroll
    for (int j = 0; j < kStencilRowsEach; ++j) sums[j] = sums[j] + weight * near[j * width];
  }
#pragma unroll
  for (int j = 0; j < kStencilRowsEach; ++j) to[j * width] = sums[j];
}

template <class T>
CUOP_FN void stencil_tiles(const StencilArguments& a) {
  const StencilGrid& grid = a.grid;
  const int64_t across = (grid.width + kStencilColumns - 1) / kStencilColumns;
  const int64_t tiles = across * ((grid.height + kStencilRows - 1) / kStencilRows);
  T* const out = static_cast<T*>(a.out);
  const T start = a.taps > 0 ? -T(0) : T(0);  // -0 + x is x, zeros with their signs too
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t above = quotient(tile, across);
    const int64_t first_row = above * kStencilRows;
    const int64_t first_column = (tile - above * across) * kStencilColumns;
    const int64_t row = first_row + threadIdx.x / kStencilColumns * kStencilRowsEach;
    const int64_t column = first_column + threadIdx.x % kStencilColumns;
    if (is_inside(a, first_row, first_column)) {
      stencil_inside(a, start, row * grid.width + column);
      continue;
    }
#pragma unroll 1
    for (int64_t r = row; r < row + kStencilRowsEach; ++r) {
      if (r >= grid.height || column >= grid.width) continue;
      T sum = a.is_first != 0 ? start : out[r * grid.width + column];
#pragma unroll 1
      for (int64_t n = 0; n < a.taps; ++n) {
        const StencilTap& tap = a.tap[n];
        sum = sum + weight_of<T>(tap) * cell<T>(grid, r + tap.row, column + tap.column);
      }
      out[r * grid.width + column] = sum;
    }
  }
}

/// A block takes whole rows, so that each row's norm is summed in one order.
template <class T, bool IsResidual>
CUOP_FN void jacobi_rows(const JacobiArguments& a) {
  const int64_t width = a.grid.width;
  const T* const rhs = static_cast<const T*>(a.rhs);
  Agreement<kStencilThreads, double> agreed;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.grid.height; row += gridDim.x) {
    double norm = 0;
#pragma unroll 1
    for (int64_t column = threadIdx.x; column < width; column += kStencilThreads) {
      const int64_t at = row * width + column;
      const T center = static_cast<const T*>(a.grid.first)[at];
      const T north = cell<T>(a.grid, row - 1, column), south = cell<T>(a.grid, row + 1, column);
      const T west = cell<T>(a.grid, row, column - 1), east = cell<T>(a.grid, row, column + 1);
      if constexpr (IsResidual) {
        const double sum = (double(north) + double(south)) + (double(west) + double(east));
        const double rest = double(rhs[at]) - (sum - 4.0 * double(center)) * a.factor;
        norm += rest * rest;
      } else {
        const T next =
            (((north + south) + (west + east)) - static_cast<T>(a.factor) * rhs[at]) * T(0.25);
        static_cast<T*>(a.out)[at] = next;
        const double update = static_cast<double>(next - center);
        norm += update * update;
      }
    }
    norm = agreed(norm, Total{});
    if (threadIdx.x == 0) a.norms[row] = norm;
  }
}

}  // namespace cuop::jit
