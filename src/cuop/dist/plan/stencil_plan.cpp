#include "cuop/dist/plan/stencil_plan.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {
namespace {

/// Appends rows [low, high) of the unbounded grid, of which the padded block holds `low` at `row`.
void add_rows(HaloNeeds& halo, int rank, Interval wanted, int64_t row, int64_t rows,
              int64_t columns, bool is_periodic) {
  int64_t low = wanted.low;
  while (low < wanted.high) {
    // Copy number `wrap` of the grid lies at [wrap * rows, (wrap + 1) * rows).
    const int64_t wrap = low >= 0 ? low / rows : -divide_up(-low, rows);
    const int64_t high = std::min(wanted.high, (wrap + 1) * rows);
    if (is_periodic || wrap == 0) {
      halo.needs.push_back({rank, {{low - wrap * rows, 0}, {high - wrap * rows, columns}}});
      halo.row.push_back(row + low - wanted.low);
    }
    low = high;
  }
}

Plan plan_strategy(const SweepProblem& problem, const Machine& machine, const std::string& strategy,
                   int64_t depth) {
  const Placement& grid = problem.inputs.at(0);
  const int ranks = grid.sharding.mesh().size();
  const Sharding rows = strategy == "root" ? grid.sharding : split_over_ranks(ranks, 2, 0);
  Plan plan{problem.op, strategy, cat("depth ", depth), ranks};
  plan.settings["depth"] = depth;
  for (const Placement& input : problem.inputs) add_input(plan, machine, input, rows);
  const Sharding everywhere = strategy == "root" ? rows : Sharding::replicated(rows.mesh());
  for (const Placement& input : problem.whole) add_input(plan, machine, input, everywhere);

  const std::vector<Box> blocks = rows.owner_boxes(grid.shape);
  int64_t most_rows = 0;
  for (const Box& block : blocks) most_rows = std::max(most_rows, block.interval(0).length());
  const int64_t halo = problem.radius * depth;
  const bool is_alone = strategy == "root" || ranks == 1;
  if (strategy != "root" && problem.iterations > 0) {
    const HaloNeeds needs =
        halo_needs(blocks, grid.shape[0], grid.shape[1], halo, problem.is_periodic);
    const int64_t exchanges = divide_up(problem.iterations, depth);
    add_move(plan, machine, cat("halo of ", halo, " rows, ", exchanges, " times"), blocks,
             needs.needs, grid.dtype);
    PlanStep& step = plan.steps.back();
    step.bytes *= exchanges;
    step.rank_bytes *= exchanges;
    step.messages *= exchanges;
    step.whole_on = 0;  // halos, also where they cover a small grid
    step.seconds *= static_cast<double>(exchanges);
    // Copied where it is.
    if (is_alone && problem.is_periodic) {
      step.seconds = machine.latency * static_cast<double>(exchanges);
    }
  }
  if (problem.is_watched && problem.iterations > 0) {
    const int64_t looks = divide_up(problem.iterations, depth);
    PlanStep step;
    step.kind = StepKind::kCombine;
    step.text = cat("norms of ", depth, " updates, ", looks, " times");
    step.rank_bytes = strategy == "root" ? 0 : grid.shape[0] * 8 * depth * looks;
    step.bytes = step.rank_bytes * (ranks - 1);
    step.messages = strategy == "root" ? 0 : looks * (ranks - 1);
    // Also where nothing travels somebody waits for the device and looks.
    step.seconds = transfer_seconds(machine, step.rank_bytes, step.messages) +
                   machine.latency * static_cast<double>(looks);
    plan.steps.push_back(std::move(step));
  }
  // Of `depth` sweeps the first computes radius * (depth - 1) rows more on each side, the last
  // none.
  const bool has_halo = !is_alone || problem.is_periodic;
  const double extra_rows = has_halo ? static_cast<double>(problem.radius * (depth - 1)) : 0.0;
  const double cells = (static_cast<double>(most_rows) + extra_rows) *
                       static_cast<double>(grid.shape[1]) * static_cast<double>(problem.iterations);
  add_compute(plan, machine, cat(problem.iterations, " sweeps over the local rows"),
              cells * problem.flops_per_cell,
              static_cast<int64_t>(cells) * 2 * itemsize(grid.dtype), grid.dtype);

  add_output(plan, machine, {"result", grid.shape, grid.dtype, rows}, problem.wanted);
  const int64_t width = grid.shape[1] * itemsize(grid.dtype);
  const int64_t grids = problem.is_watched && depth > 1 ? 3 : 2;
  plan.memory_per_rank = grids * (most_rows + 2 * halo) * width;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    plan.memory_per_rank +=
        largest_block(grid.shape, grid.dtype, problem.inputs[i].sharding) + most_rows * width;
  }
  return plan;
}

}  // namespace

Plan plan_sweeps(const SweepProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  // The deepest first: where nothing else tells them apart it is taken, as a GPU makes several
  // sweeps in one pass over memory.
  int64_t depth = 1;
  while (2 * depth <= problem.max_depth) depth *= 2;
  for (; depth > 0; depth /= 2) {
    if (common_rank(problem.inputs) >= 0) {
      plans.push_back(plan_strategy(problem, machine, "root", depth));
    }
    plans.push_back(plan_strategy(problem, machine, "row", depth));
  }
  return choose(std::move(plans), machine, strategy);
}

HaloNeeds halo_needs(const std::vector<Box>& blocks, int64_t rows, int64_t columns, int64_t halo,
                     bool is_periodic) {
  HaloNeeds result;
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    if (blocks[rank].empty()) continue;
    const Interval block = blocks[rank].interval(0);
    const int id = static_cast<int>(rank);
    add_rows(result, id, {block.low - halo, block.low}, 0, rows, columns, is_periodic);
    add_rows(result, id, {block.high, block.high + halo}, halo + block.length(), rows, columns,
             is_periodic);
  }
  return result;
}

}  // namespace cuop::dist
