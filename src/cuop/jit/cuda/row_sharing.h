// How the rows of a reduction are shared among threads and blocks, for kernels in the frame of
// jit/kernels/reduce.cuh. A row's work is counted in steps: accesses of one or more elements.
#pragma once

#include <cstdint>

namespace cuop::jit {

/// Threads that share a row. By columns neighbouring threads read neighbouring rows.
int team_of_row(int64_t steps, bool is_column);

struct RowSharing {
  int64_t groups = 0;  ///< of rows that a block has at once
  int64_t pieces = 1;  ///< blocks that share each group
  int64_t piece = 0;   ///< steps of one block
};
/// Few long rows are shared by so many blocks that the device is busy.
RowSharing share_rows(int64_t rows, int64_t steps, int team, int64_t multiprocessors);

}  // namespace cuop::jit
