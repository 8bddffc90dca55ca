// Stencils and Jacobi's method on a GPU: the operations of the CPU in their order, so that cells
// are the same bits there and here, in the whole grid and in a block of its rows.
#pragma once

#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/stencil/stencil_arguments.cuh"

namespace cuop::jit {

inline constexpr int kStencilThreads = 256;
inline constexpr int kStencilColumns = 32;  ///< of a block's tile
inline constexpr int kStencilRows = kStencilThreads / kStencilColumns;

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
CUOP_FN T tap_weight(double real, double imag) {
  if constexpr (is_complex_type<T>) {
    return {static_cast<RealType<T>>(real), static_cast<RealType<T>>(imag)};
  } else {
    return static_cast<T>(real);
  }
}

template <class T>
CUOP_FN void stencil_tiles(const StencilArguments& a) {
  const int64_t across = (a.grid.width + kStencilColumns - 1) / kStencilColumns;
  const int64_t tiles = across * ((a.grid.height + kStencilRows - 1) / kStencilRows);
  T* const out = static_cast<T*>(a.out);
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t row = tile / across * kStencilRows + threadIdx.x / kStencilColumns;
    const int64_t column = tile % across * kStencilColumns + threadIdx.x % kStencilColumns;
    if (row >= a.grid.height || column >= a.grid.width) continue;
    T sum = a.is_first != 0 ? T(0) : out[row * a.grid.width + column];
#pragma unroll 4
    for (int64_t n = 0; n < a.taps; ++n) {
      const auto& tap = a.tap[n];
      const T term =
          tap_weight<T>(tap.real, tap.imag) * cell<T>(a.grid, row + tap.row, column + tap.column);
      sum = n == 0 && a.is_first != 0 ? term : sum + term;
    }
    out[row * a.grid.width + column] = sum;
  }
}

/// A block takes whole rows, so that each row's norm is summed in one order.
template <class T, bool IsResidual>
CUOP_FN void jacobi_rows(const JacobiArguments& a) {
  const int64_t width = a.grid.width;
  const T* const rhs = static_cast<const T*>(a.rhs);
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
    norm = agree<kStencilThreads>(norm, Total{});
    if (threadIdx.x == 0) a.norms[row] = norm;
  }
}

}  // namespace cuop::jit
