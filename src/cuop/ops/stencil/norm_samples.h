// Which of Jacobi's sweeps a GPU measures, where norms cost as much as sweeps do: the last of a
// batch, until it comes near the tolerance; from the batch on in which it has, all are. The 2-norms
// of the updates never grow, as the matrix of the iteration is symmetric and none of its
// eigenvalues lies beyond 1: where the last of a batch is above the tolerance all others are.
// Rounding alone can make a later one larger, by far less than a factor of 2 where many cells are
// summed.
#pragma once

#include <cstdint>

namespace cuop {

/// Whether a grid has cells enough for that.
inline bool has_many_cells(int64_t cells) {
  constexpr int64_t kMany = 1 << 16;
  return cells >= kMany;
}
/// Whether no earlier sweep can have been below the tolerance. So is a NaN: it stays one.
inline bool is_far_above(double last_norm, double tolerance) {
  return !(last_norm < 2.0 * tolerance);
}

}  // namespace cuop
