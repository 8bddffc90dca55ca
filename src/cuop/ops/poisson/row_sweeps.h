// Relaxation, residuals and changes of size on blocks of whole rows of a grid. Every cell is
// computed by the same operations in the same order whatever its block, on every device, so that a
// grid cut into blocks of rows gives the same bits as the whole one.
//
// Rows of a block are numbered as in the whole grid, `first` being that of a tensor's first row; of
// a periodic grid they may be negative or lie behind the end. Rows outside of another grid hold
// zeros. Tensors are float32 or float64 of one dtype, row-major, of all columns; ShapeError,
// DTypeError, DeviceError, ExecutionError otherwise.
#pragma once

#include "cuop/core/five_point.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/poisson/band_table.h"

namespace cuop {

/// Passes of successive over-relaxation for A u = b in place, one for each of `colours`:
///   u[i, j] <- u[i, j] + omega ((b[i, j] - A u at [i, j]) / A's diagonal)
/// for the cells of that colour. `u` is [h, w] and begins at row `first`, `b` is [h - 2, w] and
/// begins a row later. Pass number k (from 0 on) leaves out the first and last k + 1 rows of `u`,
/// whose neighbours are not known to it.
void relax_rows(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
                const std::vector<int>& colours, double omega = 1.0);

/// b - A u, or A u where `b` is undefined. `padded` is [h + 2, w], `b` [h, w] begins at row
/// `first`. The result goes to `out` [h, w], which may be undefined; what is returned are the sums
/// of its squares, row by row, added in float64: [h].
Tensor residual_rows(const FivePoint& op, const Tensor& padded, const Tensor& b, int64_t first,
                     const Tensor& out);
/// Of each row the sum of products, added in float64 in an order of its own: float64 [h].
Tensor dots_of_rows(const Tensor& x, const Tensor& y);

/// Rows [low, high) of the matrix, whose columns are counted from `origin`.
BandTable band_table(const Bands& bands, int64_t low, int64_t high, int64_t origin, DType dtype,
                     Device device);
/// out = down in across^T, or out + that. `in` holds all rows that `down` names, `across` names
/// columns that may lie around the end of `in`; each has at most 4 taps.
void resample_rows(const Tensor& in, const BandTable& down, const BandTable& across,
                   const Tensor& out, bool is_added = false);

}  // namespace cuop
