// Planning iterative solvers of the Poisson equation on blocks of rows: an iteration fetches halos
// and sweeps over the block. Multigrid does so on coarser and coarser grids, the small ones on
// one rank.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/core/five_point.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

enum class RowSolver : uint8_t { kJacobi, kRedBlackSor, kCg, kMultigrid };

struct RowSolverProblem {
  std::string op;
  std::vector<Placement> inputs;  ///< grid and rhs [h, w]
  RowSolver solver = RowSolver::kMultigrid;
  AxisEnds ends = AxisEnds::kZero;
  int64_t iterations = 1;  ///< at most; the planner expects no more than the method usually takes
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when the inputs lie on one rank) and "row". settings: shared_cells, below
/// which a grid of a multigrid method lies on one rank. inputs[0]: the grid as solved; outputs[0]:
/// the result as made; outputs[1]: as wanted.
Plan plan_row_solver(const RowSolverProblem& problem, const Machine& machine,
                     std::string_view strategy = {});

}  // namespace cuop::dist
