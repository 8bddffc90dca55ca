// The row kernels on a GPU: the operations of the CPU in their order, so that cells are the same
// bits there and here.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/places.cuh"
#include "cuop/ops/poisson/five_point_arguments.cuh"

namespace cuop::jit {

/// A thread a cell of the colour: those of a row stand two columns apart.
template <class T>
CUOP_FN void relax_cells(const RelaxArguments& a) {
  const int64_t width = a.grid.width, across = divide_up(width, 2);
  const int64_t rows = a.rows - 2 * a.margin;
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * kRowThreads + threadIdx.x; i < rows * across;
       i += int64_t(gridDim.x) * kRowThreads) {
    const int64_t down = quotient(i, across), index = down + a.margin;
    if (!a.grid.has_row(index)) continue;
    const int64_t at_row = a.grid.row(index);
    const int64_t kind = a.grid.kind_of_columns(at_row, a.colour);
    const int64_t place = i - down * across;
    const int64_t column = kind < 2 ? 2 * place + kind : width - 1;
    if (column >= width || a.grid.kind(column, width) != kind || (kind == 2 && place > 0)) continue;
    T* const row = static_cast<T*>(a.u) + index * width;
    const T b = static_cast<const T*>(a.b)[(index - 1) * width + column];
    row[column] = relaxed(a.grid, row, b, static_cast<T>(a.omega), at_row, column);
  }
}

/// A block takes whole rows, so that each row's sum is made in one order.
template <class T>
CUOP_FN void residual_of_rows(const ResidualArguments& a) {
  const int64_t width = a.grid.width;
  Agreement<kRowThreads, double> agreed;
#pragma unroll 1
  for (int64_t index = blockIdx.x; index < a.rows; index += gridDim.x) {
    const int64_t at_row = a.grid.row(index);
    const T* const row = static_cast<const T*>(a.u) + index * width;
    const T* const b = a.b == nullptr ? nullptr : static_cast<const T*>(a.b) + index * width;
    double sum = 0;
#pragma unroll 1
    for (int64_t column = threadIdx.x; column < width; column += kRowThreads) {
      const T rest = residual_at(a.grid, row, b, at_row, column);
      if (a.out != nullptr) static_cast<T*>(a.out)[index * width + column] = rest;
      sum += double(rest) * double(rest);
    }
    sum = agreed(sum, Total{});
    if (threadIdx.x == 0) a.squares[index] = sum;
  }
}

template <class T>
CUOP_FN void dots_of_rows(const DotArguments& a) {
  Agreement<kRowThreads, double> agreed;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    double sum = 0;
#pragma unroll 1
    for (int64_t column = threadIdx.x; column < a.width; column += kRowThreads) {
      const int64_t at = row * a.width + column;
      sum += double(static_cast<const T*>(a.x)[at]) * double(static_cast<const T*>(a.y)[at]);
    }
    sum = agreed(sum, Total{});
    if (threadIdx.x == 0) a.dots[row] = sum;
  }
}

/// A thread a cell of the result.
template <class T>
CUOP_FN void resample_cells(const ResampleArguments& a) {
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * kRowThreads + threadIdx.x; i < a.rows * a.width;
       i += int64_t(gridDim.x) * kRowThreads) {
    const int64_t row = quotient(i, a.width), column = i - row * a.width;
    const T* const in = static_cast<const T*>(a.in) + a.first_row[row] * a.in_width;
    T sum = T(0);
#pragma unroll 1
    for (int64_t k = 0; k < a.column_taps; ++k) {
      int64_t from = a.first_column[column] + k;
      if (from < 0) from += a.in_width;
      if (from >= a.in_width) from -= a.in_width;
      T tapped = T(0);
#pragma unroll 1
      for (int64_t n = 0; n < a.row_taps; ++n) {
        const T weight = static_cast<const T*>(a.row_weights)[row * a.row_taps + n];
        const T term = weight * in[n * a.in_width + from];
        tapped = n == 0 ? term : tapped + term;
      }
      const T term = static_cast<const T*>(a.column_weights)[column * a.column_taps + k] * tapped;
      sum = k == 0 ? term : sum + term;
    }
    T& out = static_cast<T*>(a.out)[i];
    out = a.is_added != 0 ? out + sum : sum;
  }
}

}  // namespace cuop::jit
