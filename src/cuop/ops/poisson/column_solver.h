// Internal: second differences with a shift along every column of a matrix in the host's memory, as
// the columns of a five-point problem become by a transform of its rows.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/five_point.h"
#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// u[i-1, j] - (2 + shifts[j]) u[i, j] + u[i+1, j] = factor * f[i, j] for all rows i.
struct ColumnEquations {
  AxisEnds ends = AxisEnds::kZero;  ///< kZero or kZeroFlux
  double factor = 1.0;
  std::vector<double> shifts;  ///< of each column, not below 0
  /// Of a column without a shift and without flux through its ends, which leaves it open; the mean
  /// of f, which no u has there, is left out.
  double mean = 0.0;
};

/// f and u: float32 or float64 [rows, columns] of any strides, on the host; u may be f. Computed in
/// float64.
void solve_columns(const ColumnEquations& equations, const Tensor& f, const Tensor& u);

/// Columns that a thread solves side by side.
inline constexpr int64_t kColumns = 16;
/// Some columns, at most kColumns, and what they are solved with.
template <class T>
struct ColumnBlock {
  const T* f;
  T* u;
  int64_t rows, columns;
  int64_t f_row, f_column, u_row, u_column;  ///< strides, in elements
  bool has_zero_ends;
  double factor;
  const double* shifts;  ///< of each column
  double* scratch;       ///< 2 of each element
};
template <class Level, class T>
void solve_block(const ColumnBlock<T>& block);

}  // namespace cuop::kernels
