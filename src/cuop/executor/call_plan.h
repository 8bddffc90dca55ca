// How a call goes that may need several passes over the host's memory, because what its result
// needs fits on no device at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuop/executor/tile_plan.h"

namespace cuop::executor {

/// Passes of one kind.
struct TilePass {
  std::string text;
  int64_t times = 1;
  TilePlan plan;
  int64_t sweeps = 1;  ///< of each, over a grid
};
/// How passes are planned: on the ranks' devices, or on paper.
using PlanPass =
    std::function<TilePlan(const TileOperation& operation, const std::vector<Header>& inputs)>;

struct CallPlan {
  std::string op;
  std::string way;                    ///< what the passes are, as "at once", "four steps"
  std::vector<TilePass> passes = {};  ///< none: the ranks share the arrays as they are
  int64_t limit = 0;                  ///< bytes that a device may use
  int64_t smallest = 0;               ///< with less there is no way
  int64_t data_bytes = 0;             ///< of all inputs and the result
  double floor = 0;                   ///< no plan on these devices takes less
  /// Bytes on the host, or in files, of what passes keep beside inputs and result; and where a
  /// later run may go on with them.
  int64_t scratch = 0, kept_scratch = 0;

  bool is_whole() const { return passes.empty(); }
  bool is_feasible() const;
  int64_t memory() const;  ///< bytes on a device, at most
  double seconds() const;  ///< predicted
};

/// A call of one pass.
CallPlan at_once(const TilePlan& plan);
/// One of several passes of which each needs its bytes; `whole` is what it would be at once.
CallPlan in_passes(const std::string& way, std::vector<TilePass> passes, const CallPlan& whole);

/// MemoryError, naming the smallest limit that would do, for one that is not feasible.
void check_feasible(const CallPlan& plan);
void check_feasible(const TilePlan& plan);

}  // namespace cuop::executor
