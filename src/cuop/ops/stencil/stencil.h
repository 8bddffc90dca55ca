// Weighted sums over a cell's neighbourhood on 2-D grids, and Jacobi's method for the Poisson
// equation. Every output cell is computed by the same operations in the same order whatever its
// block, so a grid cut into blocks with halos gives the same bits as the whole one.
#pragma once

#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/stencil/boundary.h"

namespace cuop {

/// The five-point Laplacian (0 1 0 / 1 -4 1 / 0 1 0), row by row.
inline constexpr double kLaplacian5pt[9] = {0, 1, 0, 1, -4, 1, 0, 1, 0};
/// The nine-point Laplacian (1 4 1 / 4 -20 4 / 1 4 1) / 6.
inline constexpr double kLaplacian9pt[9] = {1.0 / 6, 4.0 / 6, 1.0 / 6, 4.0 / 6, -20.0 / 6,
                                            4.0 / 6, 1.0 / 6, 4.0 / 6, 1.0 / 6};

/// Applies `kernel` [2r+1, 2s+1] to `grid` [h, w] `iterations` times:
/// out[i, j] = sum_{a,b} kernel[a, b] grid[i + a - r, j + b - s] (correlation: not flipped).
/// Floating and complex dtypes; the 16-bit floats compute in float32 and are rounded after each
/// iteration. The kernel is converted to the grid's dtype. ShapeError for an even kernel or other
/// ranks, DTypeError for other dtypes and for a complex kernel on a real grid.
Tensor stencil2d(const Tensor& grid, const Tensor& kernel, Boundary boundary = Boundary::kZero,
                 int64_t iterations = 1, const Tensor* out = nullptr);

/// Applications to rows whose neighbours are given: `padded` is [h + 2r sweeps, w] with r halo rows
/// a sweep above and below (zeros where the grid ends), the result is [h, w]. `boundary` rules the
/// columns. ExecutionError for more sweeps than `row_sweeps_at_once`, and for columns to be made
/// that end before they begin.
Tensor stencil2d_rows(const Tensor& padded, const Tensor& kernel, Boundary boundary,
                      const Tensor* out = nullptr, const RowSweeps& rows = {});
/// How many sweeps `stencil2d_rows` makes of a grid like this one in one pass over memory.
int64_t row_sweeps_at_once(const Tensor& grid, const Tensor& kernel);

struct JacobiOptions {
  double dx = 1.0;  ///< grid spacing
  Boundary boundary = Boundary::kZero;
  int64_t iterations = 1000;  ///< largest number of sweeps
  double tolerance = 1e-6;    ///< stops when the 2-norm of a sweep's update is below
};

struct JacobiResult {
  Tensor u;
  int64_t sweeps = 0;
  double update_norm = 0.0;    ///< 2-norm of the last sweep's update
  double residual_norm = 0.0;  ///< 2-norm of f - (N + S + E + W - 4 u) / dx^2
};

/// Solves Laplace(u) = rhs by u <- (N + S + E + W - dx^2 rhs) / 4 from the given u [h, w].
/// float32, float64. `rhs` has u's shape and dtype.
JacobiResult jacobi2d(const Tensor& u, const Tensor& rhs, const JacobiOptions& options = {},
                      const Tensor* out = nullptr);

/// The result of sweeps and, for each row, the sum of squares of its update (float64 [h], of
/// several sweeps [n, h] of the n that are measured, where the grid lies: nobody has waited for
/// them).
struct JacobiSweep {
  Tensor u;
  Tensor row_norms;
  /// A whole update's squared norm: their sum, in order. Waits for the device.
  double squared_norm() const;
};
/// Sweeps over rows whose neighbours are given: `padded` is [h + 2 sweeps, w], `rhs`
/// [h + 2 (sweeps - 1), w]. Norms are of columns that are made. ExecutionError for more sweeps than
/// `jacobi_sweeps_at_once` and for columns that begin behind their end.
JacobiSweep jacobi2d_rows(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                          const Tensor* out = nullptr, const RowSweeps& rows = {});
/// How many sweeps `jacobi2d_rows` makes on that device in one pass over memory.
int64_t jacobi_sweeps_at_once(Device device);

// On a GPU norms cost as much as sweeps do: of a batch of sweeps the last is measured, until it
// comes near the tolerance; from the batch on in which it has, all are. The 2-norms of the updates
// never grow, as the matrix of the iteration is symmetric and none of its eigenvalues lies beyond
// 1: where the last of a batch is above the tolerance all others are. Rounding alone can make a
// later one larger, by far less than a factor of 2 where many cells are summed.

/// Whether a grid has cells enough for that.
inline bool has_many_cells(int64_t cells) {
  constexpr int64_t kMany = 1 << 16;
  return cells >= kMany;
}
/// Whether no earlier sweep can have been below the tolerance. So is a NaN: it stays one.
inline bool is_far_above(double last_norm, double tolerance) {
  return !(last_norm < 2.0 * tolerance);
}

/// The sums of squares of the residual rhs - (N + S + E + W - 4 u) / dx^2, row by row: float64 [h].
Tensor poisson_residual_rows(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary);

}  // namespace cuop
