// What the kernels on rows of a grid are given; host and device read the same structs, and number
// rows and colours by the same functions.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

inline constexpr int kRowThreads = 256;

/// A grid of which rows are given, the first of them being row `first` of the grid.
struct GridRows {
  int64_t height, width;  ///< of the grid
  int64_t first;
  int64_t is_periodic;   ///< 0 or 1
  int64_t is_zero_flux;  ///< 0 or 1
  int64_t colours;       ///< 2 or 3
  double down, across;

  /// Where a row of the numbering without bounds lies in the grid.
  CUOP_FN int64_t row(int64_t index) const {
    const int64_t number = first + index;
    if (number >= 0 && number < height) return number;
    const int64_t rest = number % height;
    return rest < 0 ? rest + height : rest;
  }
  CUOP_FN bool has_row(int64_t index) const {
    return is_periodic != 0 || (first + index >= 0 && first + index < height);
  }
  /// 0 and 1 in turns; 2 for the last cell of an odd loop.
  CUOP_FN int64_t kind(int64_t place, int64_t size) const {
    return is_periodic != 0 && size > 1 && size % 2 == 1 && place == size - 1 ? 2 : place % 2;
  }
  /// The kind of columns that have `colour` in a row of the grid.
  CUOP_FN int64_t kind_of_columns(int64_t at_row, int64_t colour) const {
    return (colour - kind(at_row, height) + colours) % colours;
  }
  /// The operator's diagonal in a row of the grid, at a column.
  template <class T>
  CUOP_FN T diagonal(int64_t at_row, int64_t column) const {
    int64_t rows = 2, columns = 2;
    if (is_zero_flux != 0) {
      rows -= (at_row == 0 ? 1 : 0) + (at_row == height - 1 ? 1 : 0);
      columns -= (column == 0 ? 1 : 0) + (column == width - 1 ? 1 : 0);
    }
    return static_cast<T>(down) * static_cast<T>(rows) +
           static_cast<T>(across) * static_cast<T>(columns);
  }
  /// One over that; 0 for a cell that is bound to nothing.
  template <class T>
  CUOP_FN T inverse(int64_t at_row, int64_t column) const {
    const T value = diagonal<T>(at_row, column);
    return value > T(0) ? T(1) / value : T(0);
  }
};

/// The cell beside column `column` of a row, 0 outside of a grid that is not periodic.
template <class T>
CUOP_FN T beside(const GridRows& grid, const T* row, int64_t column) {
  if (column >= 0 && column < grid.width) return row[column];
  if (grid.is_periodic == 0) return T(0);
  return column < 0 ? row[grid.width - 1] : row[0];
}

/// Its neighbours by their numbers. `row` is the cell's own, rows lie side by side.
template <class T>
CUOP_FN T sum_around(const GridRows& grid, const T* row, int64_t column) {
  const T north = row[column - grid.width], south = row[column + grid.width];
  return static_cast<T>(grid.down) * (north + south) +
         static_cast<T>(grid.across) *
             (beside(grid, row, column - 1) + beside(grid, row, column + 1));
}

template <class T>
CUOP_FN T relaxed(const GridRows& grid, const T* row, T b, T omega, int64_t at_row,
                  int64_t column) {
  const T sum = sum_around(grid, row, column);
  return row[column] + omega * ((b + sum) * grid.inverse<T>(at_row, column) - row[column]);
}

template <class T>
CUOP_FN T residual_at(const GridRows& grid, const T* row, const T* b, int64_t at_row,
                      int64_t column) {
  const T own = grid.diagonal<T>(at_row, column) * row[column];
  const T sum = sum_around(grid, row, column);
  return b != nullptr ? (b[column] + sum) - own : own - sum;
}

/// One pass over rows [margin, rows - margin) of `u`, whose numbers begin at grid.first.
struct RelaxArguments {
  GridRows grid;
  void* u;
  const void* b;  ///< begins at row 1 of `u`
  int64_t rows, margin;
  int64_t colour;
  double omega;
};

struct ResidualArguments {
  GridRows grid;  ///< whose rows are those of the result
  const void* u;  ///< at the result's first row
  const void* b;  ///< or null
  void* out;      ///< or null
  double* squares;
  int64_t rows;
};

struct DotArguments {
  const void* x;
  const void* y;
  double* dots;
  int64_t rows, width;
};

struct ResampleArguments {
  const void* in;
  int64_t in_width;
  void* out;
  int64_t rows, width;  ///< of the result
  const int64_t* first_row;
  const void* row_weights;
  const int64_t* first_column;
  const void* column_weights;
  int64_t row_taps, column_taps;
  int64_t is_added;  ///< 0 or 1
};

}  // namespace cuop::jit
