// How rows are shared among the threads of kernels built on jit/kernels/rows.cuh.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "cuop/core/dtype.h"
#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// Of one load or store at most.
inline constexpr int64_t kLoadBytes = 16;

struct RowPlan {
  int width = 1;  ///< elements of one access
  int team = 4;   ///< threads that share a row
  int keep = 1;   ///< accesses whose elements a thread keeps in registers; 0: the row is too long
  int resident = 1;  ///< blocks that a multiprocessor has registers for: more loads on the way
  int least_threads = 128;  ///< of a block: small teams share one

  int threads() const { return team <= 32 ? least_threads : team; }
  int64_t blocks(int64_t rows) const;
  /// The template arguments: "4, 32, 1".
  std::string text() const;
};

/// For contiguous rows of `length` elements of the dtype, read and written at `addresses`, beside
/// parameters in the dtype that is computed in, by threads that need so many registers beside the
/// elements they keep. Packs do not cross multiples of `group`. As this thread asks for a shape, in
/// so far as it fits: wider accesses need alignment, small teams cannot keep long rows.
RowPlan plan_rows(int64_t length, int64_t group, DType dtype, int own_registers,
                  std::initializer_list<const void*> addresses,
                  std::initializer_list<const void*> parameters = {});

/// Threads that share a row, whose elements lie within `reach` bytes: of many short ones each has a
/// thread; else, if that are not too many, so many that each has all its loads on the way together.
/// By columns neighbouring threads read neighbouring rows.
int team_of_row(int64_t rows, int64_t steps, bool is_column, int64_t reach);

struct RowSharing {
  int64_t groups = 0;  ///< of rows that a block has at once
  int64_t pieces = 1;  ///< blocks that share each group
  int64_t piece = 0;   ///< steps of one block, side by side by columns only
};
/// Few long rows are shared by so many blocks that the device is busy.
RowSharing share_rows(int64_t rows, int64_t steps, int team, int64_t multiprocessors);

/// Bytes of the partial results, at most, of `kept` rows of so many elements each that blocks
/// share, however they lie; of one of them `state`.
int64_t most_partial_bytes(int64_t kept, int64_t elements, int64_t state, int64_t multiprocessors);

}  // namespace cuop::jit
