#include "cuop/dist/plan/poisson_plan.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/plan/halo.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/multigrid_levels.h"

namespace cuop::dist {
namespace {

/// What an iteration does on one grid.
struct Work {
  double passes = 0.0;  ///< over memory, of two tensors each
  double flops = 0.0;   ///< a cell
  int64_t halos = 0;    ///< that are fetched
  int64_t halo_rows = 1;
  int64_t sums = 0;  ///< over the whole grid
};

Work work_of(RowSolver solver) {
  switch (solver) {
    case RowSolver::kJacobi:
      return {3, 12, 1, 1, 1};
    case RowSolver::kRedBlackSor:
      return {1, 10, 1, 2, 0};
    case RowSolver::kCg:
      return {5, 20, 1, 1, 2};
    case RowSolver::kMultigrid:
      break;
  }
  return {7, 50, 5, 5, 1};
}

/// To reduce a residual by 1e6 or so on n x n: what the methods' theory says.
int64_t expected_iterations(const RowSolverProblem& problem) {
  const Shape& shape = problem.inputs[0].shape;
  const int64_t longest = std::max(shape[0], shape[1]);
  int64_t usual = problem.iterations;
  if (problem.solver == RowSolver::kMultigrid) usual = 10;
  if (problem.solver == RowSolver::kCg) usual = 2 * longest;
  if (problem.solver == RowSolver::kRedBlackSor) usual = 3 * longest;
  return std::min(usual, problem.iterations);
}

int64_t most_cells(const std::vector<Box>& blocks) {
  int64_t most = 0;
  for (const Box& block : blocks) most = std::max(most, block.size());
  return most;
}

void add_grid(Plan& plan, const RowSolverProblem& problem, const Machine& machine,
              const std::vector<Box>& blocks, const Shape& shape, int64_t times) {
  const DType dtype = problem.inputs[0].dtype;
  const Work work = work_of(problem.solver);
  const auto often = static_cast<double>(times);
  const HaloGrid halo{blocks, shape, work.halo_rows, 0, problem.ends == AxisEnds::kPeriodic};
  const std::string size = cat(shape[0], " x ", shape[1]);
  add_move(plan, machine, cat("halos of ", size, ", ", times * work.halos, " times"), blocks,
           halo.needs().needs, dtype);
  PlanStep& step = plan.steps.back();
  step.repeat(times * work.halos);
  step.whole_on = 0;  // also where a halo covers a small grid
  const auto cells = static_cast<double>(most_cells(blocks)) * often;
  add_compute(plan, machine, cat("passes over ", size), cells * work.flops,
              static_cast<int64_t>(cells * work.passes) * 2 * itemsize(dtype), dtype);
  // Whatever the size, each pass is a call or a launch.
  plan.steps.back().seconds += often * work.passes * machine.latency;
}

void add_sums(Plan& plan, const Machine& machine, int64_t rows, int64_t times) {
  PlanStep step;
  step.kind = StepKind::kCombine;
  step.text = cat("sums over ", rows, " rows, ", times, " times");
  step.rank_bytes = rows * int64_t{sizeof(double)} * times;
  step.bytes = step.rank_bytes * (plan.ranks - 1);
  step.messages = times * (plan.ranks - 1);
  const LinkLoad load = spread_evenly(machine, step.rank_bytes, step.messages, plan.ranks);
  step.network_bytes = load.network_bytes;
  step.seconds = transfer_seconds(machine, load);
  plan.steps.push_back(std::move(step));
}

/// As many cells as one rank computes in the time that messages take when all share them.
int64_t shared_cells(const RowSolverProblem& problem, const Machine& machine, int ranks) {
  if (ranks == 1) return 0;
  constexpr int64_t kMany = 1 << 20;
  const DType dtype = problem.inputs[0].dtype;
  const Work work = work_of(problem.solver);
  const double alone =
      compute_seconds(machine, work.flops * kMany,
                      static_cast<int64_t>(work.passes * kMany) * 2 * itemsize(dtype), dtype) /
      kMany;
  const double messages = static_cast<double>(work.halos) *
                          transfer_seconds(machine, spread_evenly(machine, 0, 2, ranks));
  return static_cast<int64_t>(messages / (alone * (1.0 - 1.0 / ranks)));
}

Plan plan_blocks(const RowSolverProblem& problem, const Machine& machine, const char* strategy,
                 const Sharding& rows) {
  const Placement& grid = problem.inputs.at(0);
  const int64_t times = expected_iterations(problem);
  Plan plan{problem.op, strategy, cat(times, " iterations"), rows.mesh().size()};
  for (const Placement& input : problem.inputs) add_input(plan, machine, input, rows);
  const std::vector<Box> blocks = rows.owner_boxes(grid.shape);
  const bool is_shared = rows.single_rank() < 0 && plan.ranks > 1;
  plan.settings["shared_cells"] = shared_cells(problem, machine, is_shared ? plan.ranks : 1);
  int64_t tensors = 4;  // grid and rhs as given, u and b
  if (problem.solver == RowSolver::kCg) tensors += 4;
  if (problem.solver != RowSolver::kMultigrid || element_count(grid.shape) == 0) {
    add_grid(plan, problem, machine, blocks, grid.shape, times);
  } else {
    tensors += 3;  // the residual, and a third of u, b and residuals for all coarser grids
    const FivePoint op{grid.shape[0], grid.shape[1], 1.0, 1.0, problem.ends};
    const int64_t shared = plan.setting("shared_cells");
    for (const MultigridLevel& level : multigrid_levels(op, blocks, shared)) {
      add_grid(plan, problem, machine, level.blocks, {level.op.height, level.op.width}, times);
    }
  }
  const int64_t sums = work_of(problem.solver).sums;
  if (is_shared && sums > 0) add_sums(plan, machine, grid.shape[0], sums * times);
  add_output(plan, machine, {"result", grid.shape, grid.dtype, rows}, problem.wanted);
  plan.memory_per_rank = tensors * most_cells(blocks) * itemsize(grid.dtype);
  return plan;
}

/// So many iterations, each of one pass over the grid in the best case; where nobody asks for sums
/// several may share a pass.
Floor floor_of(const RowSolverProblem& problem, const Machine& machine) {
  const Placement& grid = problem.inputs.at(0);
  const Work work = work_of(problem.solver);
  const auto times = static_cast<double>(expected_iterations(problem));
  const auto cells = static_cast<double>(element_count(grid.shape));
  const double bytes = cells * static_cast<double>(itemsize(grid.dtype));
  double all_cells = cells;  // of all grids
  if (problem.solver == RowSolver::kMultigrid && cells > 0) {
    const FivePoint op{grid.shape[0], grid.shape[1], 1.0, 1.0, problem.ends};
    all_cells = 0;
    for (const MultigridLevel& level : multigrid_levels(op, {whole_box(grid.shape)})) {
      all_cells += static_cast<double>(level.op.height * level.op.width);
    }
  }
  const double passes = times == 0 ? 0.0 : work.sums > 0 ? times : 1.0;
  Least least = least_of(machine, all_cells * work.flops * times, 2.0 * bytes * passes, grid.dtype);
  if (times > 0) {
    // Coarser grids may be made where the given one is not.
    const double finest =
        least_of(machine, cells * work.flops * times, 2.0 * bytes, grid.dtype).seconds;
    least.in = {bytes, largest_share(grid.sharding, grid.shape), finest};
    least.out = {bytes, wanted_share(problem.wanted, grid.shape), finest};
  }
  least.is_rooted = is_rooted(problem.inputs, problem.wanted);
  return floor_of(least, machine, grid.sharding.mesh().size());
}

}  // namespace

Plan plan_row_solver(const RowSolverProblem& problem, const Machine& machine,
                     std::string_view strategy) {
  std::vector<Plan> plans;
  const Placement& grid = problem.inputs.at(0);
  if (common_rank(problem.inputs) >= 0) {
    plans.push_back(plan_blocks(problem, machine, "root", grid.sharding));
  }
  const Sharding rows = split_over_ranks(grid.sharding.mesh().size(), 2, 0);
  plans.push_back(plan_blocks(problem, machine, "row", rows));
  return choose(std::move(plans), machine, strategy, floor_of(problem, machine));
}

}  // namespace cuop::dist
