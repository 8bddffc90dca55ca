#include "cuop/dist/plan/stencil_plan.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/rank_grids.h"

namespace cuop::dist {
namespace {

/// A way to lay the grid over the ranks.
struct Cut {
  std::string strategy;
  std::string detail;
  Sharding blocks;
  bool is_root = false;
};

Sharding blocks_of(const RankGrid& grid, int ranks) {
  if (grid.n == 1) return split_over_ranks(ranks, 2, 0);
  if (grid.m == 1) return split_over_ranks(ranks, 2, 1);
  return Sharding(Mesh({grid.m, grid.n}, {"r", "c"}, ranks - grid.size()),
                  P(Spec::Axes{"r"}, Spec::Axes{"c"}));
}

/// Whether every cell is in one block.
bool is_partition(const Sharding& sharding, const Shape& shape) {
  int64_t cells = 0;
  for (const Box& block : sharding.owner_boxes(shape)) cells += block.size();
  return cells == element_count(shape);
}

const char* strategy_of(const Sharding& blocks, const Shape& shape) {
  const std::vector<Box> boxes = blocks.owner_boxes(shape);
  if (has_whole_rows(boxes, shape)) return "row";
  const bool has_whole_columns = std::all_of(boxes.begin(), boxes.end(), [&](const Box& block) {
    return block.empty() || block.interval(0).length() == shape[0];
  });
  return has_whole_columns ? "column" : "block_2d";
}

std::vector<Cut> cuts_of(const Placement& grid, bool has_root, std::string_view forced) {
  std::vector<Cut> cuts;
  const auto is_known = [&](const Sharding& blocks) {
    return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
      return !cut.is_root && same_owners(cut.blocks, blocks, grid.shape);
    });
  };
  if (has_root) cuts.push_back({"root", "", grid.sharding, true});
  const int ranks = grid.sharding.mesh().size();
  for (const auto& [strategy, ranks_grid] : named_grids(ranks, forced, {})) {
    const std::string detail =
        strategy == "block_2d" ? cat("grid ", ranks_grid.m, "x", ranks_grid.n, ", ") : "";
    const Sharding blocks = blocks_of(ranks_grid, ranks);
    // One rank cuts nothing by any name, and two cut no block.
    if (forced.empty() && is_known(blocks)) continue;
    cuts.push_back({strategy, detail, blocks});
  }
  if (grid.sharding.single_rank() < 0 && !is_known(grid.sharding) &&
      is_partition(grid.sharding, grid.shape)) {
    cuts.push_back({strategy_of(grid.sharding, grid.shape), "as it lies, ", grid.sharding});
  }
  return cuts;
}

/// Whether blocks are cut along an axis; the ends of a periodic grid count as cuts.
bool is_cut_along(int axis, const HaloGrid& halo) {
  return halo.is_periodic || std::any_of(halo.blocks.begin(), halo.blocks.end(), [&](const Box& b) {
           return !b.empty() && b.interval(axis).length() < halo.shape[axis];
         });
}

/// What it gains that a GPU sweeps what needs no halo while that is on its way: the shorter of the
/// two, less what it takes to launch more and to let streams wait for each other there and back.
/// Columns beside that are strips: each costs as much as a tile is wide, and launches of its own.
double overlap_gain(const SweepProblem& problem, const Machine& machine, const HaloGrid& halo,
                    double exchange_seconds) {
  constexpr int64_t kStripColumns = 128, kStripLaunches = 3;  // a sweep, and the norms in two
  const bool has_strips = !halo.has_whole_rows();
  int64_t rows = 0, columns = 0;
  for (const Box& block : halo.blocks) {
    rows = std::max(rows, block.empty() ? 0 : block.interval(0).length());
    columns = std::max(columns, block.empty() ? 0 : block.interval(1).length());
  }
  if (is_cut_along(0, halo)) rows -= 2 * halo.rows;
  if (has_strips) columns -= 2 * halo.columns;
  if (rows <= 0 || columns <= 0) return 0.0;
  const DType dtype = problem.inputs[0].dtype;
  const auto sweep_seconds = [&](int64_t cells) {
    return compute_seconds(machine, problem.flops_per_cell * static_cast<double>(cells),
                           2 * cells * itemsize(dtype), dtype);
  };
  double cost = 2.0 * (machine.latency + 2.0 * machine.message_overhead);
  if (has_strips) {
    cost += 2.0 * (sweep_seconds(rows * kStripColumns) + kStripLaunches * machine.message_overhead);
  }
  return std::min(exchange_seconds, sweep_seconds(rows * columns)) - cost;
}

void add_halos(Plan& plan, const SweepProblem& problem, const Machine& machine,
               const HaloGrid& halo, int64_t exchanges) {
  const bool is_cut = !halo.has_whole_rows();
  const std::string columns = is_cut ? cat(" and ", halo.columns, " columns") : "";
  add_move(plan, machine, cat("halo of ", halo.rows, " rows", columns, ", ", exchanges, " times"),
           halo.blocks, halo.needs().needs, problem.inputs[0].dtype);
  PlanStep& step = plan.steps.back();
  const bool is_overlapped = overlap_gain(problem, machine, halo, step.seconds) > 0.0;
  plan.settings["overlap"] = is_overlapped ? 1 : 0;
  if (is_overlapped) step.text += ", GPUs sweeping what needs no halo meanwhile";
  step.repeat(exchanges);
  step.whole_on = 0;  // also where a halo covers a small grid
  // Copied where it is.
  if (plan.ranks == 1 && problem.is_periodic) {
    step.seconds = machine.latency * static_cast<double>(exchanges);
  }
}

/// The norms that are looked at: of each sweep a sum for each row of each block.
void add_looks(Plan& plan, const Machine& machine, const std::vector<Box>& blocks, int64_t depth,
               int64_t looks, bool is_alone) {
  int64_t sums = 0;
  for (const Box& block : blocks) sums += block.empty() ? 0 : block.interval(0).length();
  PlanStep step;
  step.kind = StepKind::kCombine;
  step.text = cat("norms of ", depth, " updates, ", looks, " times");
  step.rank_bytes = is_alone ? 0 : sums * 8 * depth * looks;
  step.bytes = step.rank_bytes * (plan.ranks - 1);
  step.messages = is_alone ? 0 : looks * (plan.ranks - 1);
  const LinkLoad load = spread_evenly(machine, step.rank_bytes, step.messages, plan.ranks);
  step.network_bytes = load.network_bytes;
  // Also where nothing travels somebody waits for the device and looks.
  const double latency = load.network_messages > 0
                             ? std::max(machine.latency, machine.network_latency)
                             : machine.latency;
  step.seconds = transfer_seconds(machine, load) + latency * static_cast<double>(looks);
  plan.steps.push_back(std::move(step));
}

/// Cells that the busiest rank computes in a sweep: of `depth` sweeps the first reaches
/// radius * (depth - 1) rows beyond the block on each side, the last none; of the columns that a
/// rank keeps all are computed.
double cells_of_a_sweep(const SweepProblem& problem, const HaloGrid& halo, int64_t depth,
                        bool has_neighbours) {
  double most = 0.0;
  for (size_t rank = 0; rank < halo.blocks.size(); ++rank) {
    const Box& block = halo.blocks[rank];
    if (block.empty()) continue;
    const int64_t more = has_neighbours ? problem.radius * (depth - 1) : 0;
    const int64_t columns = halo.window(static_cast<int>(rank)).interval(1).length();
    most = std::max(most, static_cast<double>(block.interval(0).length() + more) *
                              static_cast<double>(columns));
  }
  return most;
}

int64_t memory_of(const SweepProblem& problem, const HaloGrid& halo, int64_t depth,
                  const Sharding& rows) {
  const Placement& grid = problem.inputs[0];
  const bool is_cut = !halo.has_whole_rows();
  int64_t window = 0, block = 0, bytes = 0;
  for (size_t rank = 0; rank < halo.blocks.size(); ++rank) {
    window = std::max(window, halo.window(static_cast<int>(rank)).size());
    block = std::max(block, halo.blocks[rank].size());
  }
  // What one may return to, on GPUs of two batches of sweeps; norms of cut rows are made after
  // going back and returning from there.
  int64_t kept = 0;
  if (problem.is_watched) kept = problem.iterations > depth ? 2 : depth > 1 ? 1 : 0;
  if (problem.ends_with_norms && is_cut) kept = std::max<int64_t>(kept, 1) + 1;
  // And two that are swept to and fro.
  bytes += (2 + kept) * window * itemsize(grid.dtype);
  for (const Placement& input : problem.inputs) {
    bytes += largest_block(grid.shape, grid.dtype, input.sharding);
    bytes += block * itemsize(grid.dtype);
    if (problem.ends_with_norms && is_cut) bytes += largest_block(grid.shape, grid.dtype, rows);
  }
  return bytes;
}

Plan plan_cut(const SweepProblem& problem, const Machine& machine, const Cut& cut, int64_t depth) {
  const Placement& grid = problem.inputs.at(0);
  const int ranks = grid.sharding.mesh().size();
  Plan plan{problem.op, cut.strategy, cat(cut.detail, "depth ", depth), ranks};
  plan.settings["depth"] = depth;
  plan.settings["overlap"] = 0;
  for (const Placement& input : problem.inputs) add_input(plan, machine, input, cut.blocks);
  const Sharding everywhere = cut.is_root ? cut.blocks : Sharding::replicated(cut.blocks.mesh());
  for (const Placement& input : problem.whole) add_input(plan, machine, input, everywhere);

  const HaloGrid halo{cut.blocks.owner_boxes(grid.shape), grid.shape, problem.radius * depth,
                      problem.column_radius * depth, problem.is_periodic};
  const bool is_alone = cut.is_root || ranks == 1;
  const int64_t rounds = divide_up(problem.iterations, depth);
  if (!cut.is_root && rounds > 0) add_halos(plan, problem, machine, halo, rounds);
  if (problem.is_watched && rounds > 0) {
    add_looks(plan, machine, halo.blocks, depth, rounds, cut.is_root);
  }
  const double cells = cells_of_a_sweep(problem, halo, depth, !is_alone || problem.is_periodic) *
                       static_cast<double>(problem.iterations);
  add_compute(plan, machine, cat(problem.iterations, " sweeps over the local block"),
              cells * problem.flops_per_cell,
              static_cast<int64_t>(cells) * 2 * itemsize(grid.dtype), grid.dtype);
  const Sharding rows = split_over_ranks(ranks, 2, 0);
  if (problem.ends_with_norms && !halo.has_whole_rows()) {
    add_move(plan, machine, "blocks of rows for the norms at the end", halo.blocks,
             needs_of(rows.owner_boxes(grid.shape)), grid.dtype);
    plan.steps.back().repeat(static_cast<int64_t>(problem.inputs.size()) + 1);
    plan.steps.back().whole_on = 0;
  }
  add_output(plan, machine, {"result", grid.shape, grid.dtype, cut.blocks}, problem.wanted);
  plan.memory_per_rank = memory_of(problem, halo, depth, rows);
  return plan;
}

/// Sweeps over a grid that is read and written once, in the best case for all of them.
Floor floor_of(const SweepProblem& problem, const Machine& machine) {
  const Placement& grid = problem.inputs.at(0);
  const auto cells = static_cast<double>(element_count(grid.shape));
  const double bytes = cells * static_cast<double>(itemsize(grid.dtype));
  const auto sweeps = static_cast<double>(problem.iterations);
  const bool has_work = problem.iterations > 0;
  Least least = least_of(machine, cells * sweeps * problem.flops_per_cell,
                         has_work ? 2.0 * bytes : 0.0, grid.dtype);
  if (has_work) {
    least.in = {bytes, largest_share(grid.sharding, grid.shape), least.seconds};
    least.out = {bytes, wanted_share(problem.wanted, grid.shape), least.seconds};
  }
  least.is_rooted = is_rooted(problem.inputs, problem.wanted);
  return floor_of(least, machine, grid.sharding.mesh().size());
}

}  // namespace

Plan plan_sweeps(const SweepProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  const std::vector<Cut> cuts =
      cuts_of(problem.inputs.at(0), common_rank(problem.inputs) >= 0, strategy);
  // The deepest first: where nothing else tells them apart it is taken, as a GPU makes several
  // sweeps in one pass over memory.
  int64_t depth = 1;
  while (2 * depth <= problem.max_depth) depth *= 2;
  for (; depth > 0; depth /= 2) {
    for (const Cut& cut : cuts) plans.push_back(plan_cut(problem, machine, cut, depth));
  }
  return choose(std::move(plans), machine, strategy, floor_of(problem, machine));
}

}  // namespace cuop::dist
