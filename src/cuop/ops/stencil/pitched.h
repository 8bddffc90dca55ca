// Grids of which kernels read and write some columns: rows that lie apart from each other.
#pragma once

#include "cuop/core/error.h"
#include "cuop/core/tensor.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/stencil/boundary.h"

namespace cuop {

/// Whether the kernels of a grid's device take it as it lies: on a GPU rows of any pitch.
inline bool is_pitched(const Tensor& grid) {
  if (grid.is_contiguous()) return true;
  const bool has_dense_rows = grid.strides()[1] == 1 && grid.strides()[0] >= grid.shape(1);
  return has_dense_rows && !grid.device().is_cpu();
}

/// The grid, copied where kernels do not take it as it lies.
inline Tensor as_pitched(const Tensor& grid) { return is_pitched(grid) ? grid : contiguous(grid); }

/// ExecutionError for columns that end before they begin, or begin below 0.
inline void check_made(const char* who, const RowSweeps& rows) {
  if (rows.first_made >= 0 && rows.last_made >= rows.first_made) return;
  throw ExecutionError(cat(who, ": columns ", rows.first_made, " to ", rows.last_made,
                           " were to be made; they must begin at 0 or above and not end before"));
}

inline Tensor made_columns(const Tensor& grid, const RowSweeps& rows) {
  const int64_t width = grid.shape(1);
  return slice(grid, 1, rows.made_begin(width), rows.made_end(width));
}

/// Has `fill` write the columns of the result that are made: in place where kernels can do that,
/// else, and where the CPU is to leave columns alone, into another tensor, from which they are
/// copied.
template <class Fill>
void fill_made(const Tensor& result, DType dtype, const RowSweeps& rows, Fill&& fill) {
  const Tensor made = made_columns(result, rows);
  const bool is_in_place = made.size() == result.size() || !result.device().is_cpu();
  if (is_in_place && result.dtype() == dtype && is_pitched(result)) return fill(result);
  const Tensor dense = empty(result.shape(), dtype, result.device());
  fill(dense);
  copy_into(made, made_columns(dense, rows));
}

}  // namespace cuop
