#include "cuop/jit/cuda/row_sharing.h"

#include <algorithm>

#include "cuop/core/divide_up.h"

namespace cuop::jit {

namespace {

constexpr int kReduceThreads = 256;
/// Blocks a multiprocessor should have before rows are shared among blocks.
constexpr int64_t kBusyBlocks = 4;
/// Steps that a thread should have of a shared row at least.
constexpr int64_t kMinStepsPerThread = 4;
constexpr int64_t kMaxPieces = 1024;
/// Groups of rows that blocks can count themselves in.
constexpr int64_t kMaxSharedGroups = 4096;

int64_t pieces_of(int64_t groups, int64_t steps, int team, int64_t multiprocessors) {
  const int64_t wanted = kBusyBlocks * multiprocessors;
  if (groups >= wanted || groups > kMaxSharedGroups) return 1;
  const int64_t worthwhile = steps / (team * kMinStepsPerThread);
  return std::clamp<int64_t>(std::min(divide_up(wanted, groups), worthwhile), 1, kMaxPieces);
}

}  // namespace

int team_of_row(int64_t steps, bool is_column) {
  if (is_column) return 8;
  return steps <= 2 ? 1 : steps <= 16 ? 8 : steps <= 256 ? 32 : 256;
}

RowSharing share_rows(int64_t rows, int64_t steps, int team, int64_t multiprocessors) {
  RowSharing sharing;
  sharing.groups = divide_up(rows, kReduceThreads / team);
  const int64_t wanted = pieces_of(sharing.groups, steps, team, multiprocessors);
  sharing.piece = std::max<int64_t>(1, divide_up(steps, wanted));
  sharing.pieces = std::max<int64_t>(1, divide_up(steps, sharing.piece));
  return sharing;
}

}  // namespace cuop::jit
