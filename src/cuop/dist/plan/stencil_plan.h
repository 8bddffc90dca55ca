// Planning sweeps over a 2-D grid cut into blocks of rows. Before a sweep each rank fetches the
// rows around its block (the halo) from whoever owns them, which may be several ranks when blocks
// are small. A halo that is `depth` sweeps deep is fetched once for `depth` sweeps: fewer messages,
// and some rows are computed twice.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// The most sweeps between two exchanges of the halo.
inline constexpr int64_t kMaxDepth = 16;

struct SweepProblem {
  std::string op;
  std::vector<Placement> inputs;  ///< the grid [h, w] first; what else lies in the same rows
  int64_t radius = 1;             ///< rows that a cell reads above and below its own
  bool is_periodic = false;
  int64_t iterations = 1;
  double flops_per_cell = 10;
  int64_t max_depth = 1;
  bool is_watched = false;  ///< the norm of every sweep is looked at, after the sweeps of one halo
  std::vector<Placement> whole;  ///< inputs that every rank needs whole, after those in rows
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when the inputs lie on one rank) and "row". settings: depth.
/// inputs[0]: the grid as swept; outputs[0]: the result as made; outputs[1]: as wanted.
Plan plan_sweeps(const SweepProblem& problem, const Machine& machine,
                 std::string_view strategy = {});

/// A halo as needs: which rows each rank fetches, and where in its padded block they land.
struct HaloNeeds {
  std::vector<Need> needs;
  std::vector<int64_t> row;  ///< for each need its first row in the padded block
};
/// The rows [low - halo, low) and [high, high + halo) around each rank's block of rows; wrapped
/// around (several times if need be) when periodic, cut at the grid's ends when not. `columns` is
/// the grid's width.
HaloNeeds halo_needs(const std::vector<Box>& blocks, int64_t rows, int64_t columns, int64_t halo,
                     bool is_periodic);

}  // namespace cuop::dist
