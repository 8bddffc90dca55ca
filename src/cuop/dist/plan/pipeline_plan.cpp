#include "cuop/dist/plan/pipeline_plan.h"

#include <algorithm>
#include <utility>

#include "cuop/core/text.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/overlap.h"

namespace cuop::dist {
namespace {

constexpr int64_t kMostChunks = 64;

Plan on_root(const PipelinedMatmul& problem, const Machine& machine, const Placement& a,
             const Placement& b, const Placement& c, double flops, int64_t bytes) {
  Plan plan{"matmul_pipelined", "root", "", problem.at_root.mesh().size(), {a, b}};
  add_compute(plan, machine, "C = A @ B", flops, bytes, problem.dtype);
  add_output(plan, machine, c, problem.at_root);
  plan.settings["chunks"] = 0;
  plan.memory_per_rank = bytes;
  return plan;
}

}  // namespace

std::vector<Box> chunk_boxes(int64_t rows, int64_t columns, int64_t chunks, int64_t chunk,
                             int ranks) {
  const Interval in_chunk = split_evenly({0, rows}, chunks, chunk);
  std::vector<Box> boxes;
  for (int rank = 0; rank < ranks; ++rank) {
    const Interval part = split_evenly(in_chunk, ranks, rank);
    boxes.push_back({{part.low, 0}, {part.high, columns}});
  }
  return boxes;
}

Plan plan_pipelined_matmul(const PipelinedMatmul& problem, const Machine& machine,
                           std::string_view strategy) {
  const auto& [m, n, k, dtype, at_root, chunks_asked] = problem;
  const int ranks = at_root.mesh().size();
  const Placement a{"A", {m, k}, dtype, at_root}, b{"B", {k, n}, dtype, at_root},
      c{"C", {m, n}, dtype, at_root};
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t item = itemsize(dtype);
  const int64_t bytes = (m * k + k * n + m * n) * item;
  std::vector<Plan> plans;
  if (chunks_asked == 0) plans.push_back(on_root(problem, machine, a, b, c, flops, bytes));

  const std::vector<Box> owners_a = at_root.owner_boxes(a.shape),
                         owners_c = at_root.owner_boxes(c.shape);
  Plan plan{"matmul_pipelined", "pipelined", "", ranks};
  plan.inputs.push_back(a);
  add_input(plan, machine, b, Sharding::replicated(at_root.mesh()), true);
  PlanStep step;
  const std::vector<Box> rows_of_a = chunk_boxes(m, k, 1, 0, ranks),
                         rows_of_c = chunk_boxes(m, n, 1, 0, ranks);
  // There and back are two directions of a link.
  const Traffic out = plan_traffic(owners_a, needs_of(rows_of_a)),
                back = plan_traffic(rows_of_c, needs_of(owners_c));
  step.bytes = (out.total() + back.total()) * item;
  step.rank_bytes = std::max(out.busiest(), back.busiest()) * item;
  step.flops = flops * static_cast<double>(rows_of_a[0].interval(0).length()) /
               static_cast<double>(std::max<int64_t>(m, 1));
  const double compute = compute_seconds(
      machine, step.flops, (rows_of_a[0].size() + k * n + rows_of_c[0].size()) * item, dtype);
  const LinkLoad there = load_of(out, machine, dtype), again = load_of(back, machine, dtype);
  const LinkLoad load{std::max(there.bytes, again.bytes), there.messages + again.messages,
                      std::max(there.network_bytes, again.network_bytes),
                      there.network_messages + again.network_messages};
  step.network_bytes = load.network_bytes;
  const double moves = wire_seconds(machine, load);
  const int64_t messages = out.most_messages() + back.most_messages();
  const double each = start_seconds(machine, load, 2);
  const int64_t most = std::clamp<int64_t>(m / std::max(ranks, 1), 1, kMostChunks);
  const int64_t chunks = chunks_asked > 0 ? std::clamp<int64_t>(m, 1, chunks_asked)
                                          : best_chunks(compute, moves, each, most);
  step.messages = messages * chunks;
  step.seconds = overlapped_seconds(compute, moves, chunks, each);
  step.text = cat("rows of A out, multiplied and back in ", chunks, " chunks");
  plan.steps.push_back(std::move(step));
  add_output(plan, machine, c, at_root);
  plan.detail = cat(chunks, " chunks");
  plan.settings["chunks"] = chunks;
  plan.memory_per_rank = bytes + (rows_of_a[0].size() + rows_of_c[0].size()) * item;
  plans.push_back(std::move(plan));
  return choose(std::move(plans), machine, strategy,
                matmul_floor({m, n, k, dtype, at_root, at_root, at_root}, machine));
}

}  // namespace cuop::dist
