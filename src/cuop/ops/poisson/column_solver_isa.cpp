// Gaussian elimination of M-matrices without a difference: with 1 - m in place of the multiplier m
// no digits of a small shift are lost (A. S. Alfa, J. Xue, Q. Ye: Accurate computation of the
// smallest eigenvalue of a diagonally dominant M-matrix, Math. Comp. 71, 2002).
#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/poisson/column_solver.h"

namespace cuop::kernels {

namespace {

/// Rows ahead that are fetched: they lie too far apart for the processor to guess.
constexpr int64_t kAhead = 12;

/// IsDense: all kColumns, next to each other. Others are as many as they are.
template <bool IsDense, class T>
int64_t width_of(const ColumnBlock<T>& block) {
  return IsDense ? kColumns : block.columns;
}

/// m of each row, and what u would be if the next row's were 0, go to the scratch memory.
template <bool IsDense, class T>
void eliminate(const ColumnBlock<T>& block) {
  const int64_t width = width_of<IsDense>(block), step = IsDense ? 1 : block.f_column;
  double rest[kColumns], made[kColumns] = {};  // rest: 1 - m
  for (double& each : rest) each = block.has_zero_ends ? 1.0 : 0.0;
  for (int64_t i = 0; i < block.rows; ++i) {
    const T* const f = block.f + i * block.f_row;
    if (IsDense && i + kAhead < block.rows) {
      __builtin_prefetch(f + kAhead * block.f_row);
      __builtin_prefetch(f + kAhead * block.f_row + kColumns / 2);
    }
    // Without flux the last row has one side less, too.
    const double sides = block.has_zero_ends || i + 1 < block.rows ? 1.0 : 0.0;
    double* const multiplier = block.scratch + 2 * width * i;
    double* const partial = multiplier + width;
    for (int64_t j = 0; j < width; ++j) {
      const double above = block.shifts[j] + rest[j];
      const double inverse = 1.0 / (sides + above);
      made[j] = (made[j] - block.factor * static_cast<double>(f[j * step])) * inverse;
      rest[j] = above * inverse;
      multiplier[j] = inverse;
      partial[j] = made[j];
    }
  }
}

template <bool IsDense, class T>
void substitute(const ColumnBlock<T>& block) {
  const int64_t width = width_of<IsDense>(block), step = IsDense ? 1 : block.u_column;
  double made[kColumns] = {};
  for (int64_t i = block.rows - 1; i >= 0; --i) {
    const double* const multiplier = block.scratch + 2 * width * i;
    const double* const partial = multiplier + width;
    T* const u = block.u + i * block.u_row;
    for (int64_t j = 0; j < width; ++j) {
      made[j] = partial[j] + multiplier[j] * made[j];
      u[j * step] = static_cast<T>(made[j]);
    }
  }
}

}  // namespace

template <class Level, class T>
void solve_block(const ColumnBlock<T>& block) {
  const bool is_whole = block.columns == kColumns;
  is_whole&& block.f_column == 1 ? eliminate<true>(block) : eliminate<false>(block);
  is_whole&& block.u_column == 1 ? substitute<true>(block) : substitute<false>(block);
}
template void solve_block<isa::CUOP_ISA, float>(const ColumnBlock<float>&);
template void solve_block<isa::CUOP_ISA, double>(const ColumnBlock<double>&);

}  // namespace cuop::kernels
