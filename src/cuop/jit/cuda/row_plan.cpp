#include "cuop/jit/cuda/row_plan.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"

namespace cuop::jit {

namespace {

/// Warps cost less to agree than blocks, so small teams are tried first.
constexpr int kTeams[] = {4, 32, 128, 256, 512};
/// 4-byte registers that a thread gives to a row's elements: of all teams, and of the largest if
/// that keeps a row that else would be read twice.
constexpr int64_t kKept = 20, kMostKept = 40;
constexpr int64_t kMostAccesses = 10;
/// Rows and columns that keep a device busy with a thread each, and what one thread takes: bytes of
/// a row, which the threads of a warp find in the same lines of the cache; steps of a column
/// (fewer), unless a team takes them all together.
constexpr int64_t kManyRows = 1 << 15, kManyColumns = 1 << 17, kShortRow = 96, kLongColumn = 64;
constexpr int kColumnTeam = 8;
/// Rows that keep a device busy with a warp each, which agrees in less time than a block does.
constexpr int64_t kManyLongRows = 1 << 13;
constexpr int64_t kRegistersOfMultiprocessor = 65536, kThreadsOfMultiprocessor = 2048;

/// Blocks whose threads find their registers, which are given out by eights.
int blocks_resident(int threads, int64_t registers) {
  const int64_t most = kRegistersOfMultiprocessor / round_up(registers, 8);
  return static_cast<int>(std::max<int64_t>(1, std::min(most, kThreadsOfMultiprocessor) / threads));
}

/// Blocks a multiprocessor should have before rows are shared among blocks.
constexpr int64_t kBusyBlocks = 4;
/// Steps that a thread should have of a shared row at least.
constexpr int64_t kMinStepsPerThread = 4;
/// Times all that a team loads at once, from which a rest of a piece is a small part of it.
constexpr int64_t kLongPiece = 16;
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

int64_t RowPlan::blocks(int64_t rows) const { return divide_up(rows, threads() / team); }

std::string RowPlan::text() const { return cat(width, ", ", team, ", ", keep); }

RowPlan plan_rows(int64_t length, int64_t group, DType dtype, int own_registers,
                  std::initializer_list<const void*> addresses,
                  std::initializer_list<const void*> parameters) {
  RowPlan plan;
  plan.least_threads = block_threads(plan.least_threads);
  const int64_t bytes = itemsize(dtype);
  const auto are_aligned = [](std::initializer_list<const void*> list, int64_t access) {
    return std::all_of(list.begin(), list.end(), [access](const void* address) {
      return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(access) == 0;
    });
  };
  const auto fits = [&](int64_t width) {
    const int64_t computed = width * itemsize(compute_dtype(dtype));
    return length % width == 0 && group % width == 0 && are_aligned(addresses, width * bytes) &&
           are_aligned(parameters, std::min(kLoadBytes, computed));
  };
  int64_t width = std::max<int64_t>(1, access_bytes(kLoadBytes) / bytes);
  while (!fits(width)) width /= 2;
  plan.width = static_cast<int>(width);
  const int64_t packs = length / width;
  const int64_t pack_registers = width * itemsize(compute_dtype(dtype)) / 4;
  const auto keeps = [&](int team, int64_t most) {
    const int64_t keep = std::max<int64_t>(1, divide_up(packs, team));
    const int64_t kept = keep * pack_registers;
    if (kept > most || keep > kMostAccesses) return false;
    plan.team = team;
    plan.keep = static_cast<int>(keep);
    plan.resident = blocks_resident(plan.threads(), kept + own_registers);
    return true;
  };
  const int wanted = backend::execution_options().kernel.shape.team;
  const auto read_again = [&](int team) {
    plan.team = team;
    plan.keep = 0;
    plan.resident = blocks_resident(plan.threads(), kKept + own_registers);
    return plan;
  };
  if (wanted != 0) return keeps(wanted, kMostKept) ? plan : read_again(wanted);
  for (const int team : kTeams) {
    if (keeps(team, kKept)) return plan;
  }
  const int largest = kTeams[std::size(kTeams) - 1];
  return keeps(largest, kMostKept) ? plan : read_again(largest);
}

int team_of_row(int64_t rows, int64_t steps, bool is_column, int64_t reach) {
  if (is_column) {
    const bool has_rest = steps % (kColumnTeam * kStepsTogether) != 0;
    return rows >= kManyColumns && steps < kLongColumn && has_rest ? 1 : kColumnTeam;
  }
  if (steps <= 2 || (rows >= kManyRows && reach <= kShortRow)) return 1;
  if (steps > 256 && rows < kManyLongRows) return 256;
  const auto threads = static_cast<uint64_t>(divide_up(steps, int64_t{kStepsTogether}));
  return static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(threads), 4, 32));
}

RowSharing share_rows(int64_t rows, int64_t steps, int team, int64_t multiprocessors) {
  RowSharing sharing;
  sharing.groups = divide_up(rows, kReduceThreads / team);
  const int64_t wanted = pieces_of(sharing.groups, steps, team, multiprocessors);
  sharing.piece = std::max<int64_t>(1, divide_up(steps, wanted));
  // What is left over waits for its loads once more, which short pieces feel.
  const int64_t together = team * kStepsTogether;
  if (wanted > 1 && sharing.piece < kLongPiece * together) {
    sharing.piece = round_up(sharing.piece, together);
  }
  sharing.pieces = std::max<int64_t>(1, divide_up(steps, sharing.piece));
  return sharing;
}

int64_t most_partial_bytes(int64_t kept, int64_t elements, int64_t state, int64_t multiprocessors) {
  constexpr int64_t kMostWidth = 16, kAlignment = 16, kFar = int64_t{1} << 40;
  int64_t most = 0;
  for (const bool is_column : {false, true}) {
    for (int64_t width = 1; width <= kMostWidth; width *= 2) {
      if (is_column && width > 1 && kept < width) break;
      const int64_t rows = is_column ? divide_up(kept, width) : kept;
      const int64_t steps = is_column ? elements : divide_up(elements, width);
      for (const int64_t reach : {int64_t{1}, kFar}) {
        const int team = team_of_row(rows, steps, is_column, reach);
        const RowSharing sharing = share_rows(rows, steps, team, multiprocessors);
        if (sharing.pieces == 1) continue;
        const int64_t bytes = round_up(state * (is_column ? width : 1), kAlignment);
        most = std::max(most, rows * sharing.pieces * bytes);
      }
    }
  }
  return most;
}

}  // namespace cuop::jit
