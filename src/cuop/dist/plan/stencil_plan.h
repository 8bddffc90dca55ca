// Planning sweeps over a 2-D grid cut into blocks of rows, of columns or of both. Before a sweep
// each rank fetches the cells around its block (the halo) from whoever owns them. A halo that is
// `depth` sweeps deep is fetched once for `depth` sweeps: fewer messages, and some cells are
// computed twice.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/dist/plan/halo.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// The most sweeps between two exchanges of the halo.
inline constexpr int64_t kMaxDepth = 16;

struct SweepProblem {
  std::string op;
  std::vector<Placement> inputs;  ///< the grid [h, w] first; what else lies in the same blocks
  int64_t radius = 1;             ///< rows that a cell reads above and below its own
  int64_t column_radius = 1;      ///< columns to its left and right
  bool is_periodic = false;
  int64_t iterations = 1;
  double flops_per_cell = 10;
  int64_t max_depth = 1;
  bool is_watched = false;  ///< the norm of every sweep is looked at, after the sweeps of one halo
  /// Norms at the end are sums over whole rows: where rows are cut, the inputs are brought into
  /// blocks of rows for them, the grid once for the last update and once for what it has become.
  bool ends_with_norms = false;
  std::vector<Placement> whole;  ///< inputs that every rank needs whole, after those in blocks
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when the inputs lie on one rank), "row", "column" and "block_2d"; even
/// blocks of as many ranks as there are, and the grid's blocks as they lie where those are others.
/// A forced "block_2d" leaves ranks idle where their number has no other factors. settings: depth;
/// overlap, 1 where GPUs do not wait for the halo with what needs none (predicted times do not
/// count on it). inputs[0]: the grid as swept; outputs[0]: the result as made; outputs[1]: as
/// wanted.
Plan plan_sweeps(const SweepProblem& problem, const Machine& machine,
                 std::string_view strategy = {});

}  // namespace cuop::dist
