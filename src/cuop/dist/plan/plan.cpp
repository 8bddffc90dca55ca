#include "cuop/dist/plan/plan.h"

#include <algorithm>
#include <set>

#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/text.h"

namespace cuop::dist {

const char* name(StepKind kind) {
  static constexpr const char* kNames[] = {"move", "compute", "combine"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t Plan::bytes() const {
  int64_t sum = 0;
  for (const PlanStep& step : steps) sum += step.bytes;
  return sum;
}

double Plan::flops() const {
  double sum = 0;
  for (const PlanStep& step : steps) sum += step.flops;
  return sum;
}

double Plan::seconds() const {
  double sum = 0;
  for (const PlanStep& step : steps) sum += step.seconds;
  return sum;
}

void add_move(Plan& plan, const Machine& machine, const std::string& text,
              const std::vector<Box>& owners, const std::vector<Need>& needs, DType dtype,
              Sources sources) {
  const Traffic traffic = plan_traffic(owners, needs, sources);
  PlanStep step;
  step.kind = sources == Sources::kAll ? StepKind::kCombine : StepKind::kMove;
  step.text = text;
  step.bytes = traffic.total() * itemsize(dtype);
  step.rank_bytes = traffic.busiest() * itemsize(dtype);
  step.messages = traffic.most_messages();
  step.seconds = transfer_seconds(machine, step.rank_bytes, step.messages);
  if (sources == Sources::kAll) {  // what arrives is folded: read once, added to what is there
    step.seconds += static_cast<double>(2 * step.rank_bytes) / machine.memory_bandwidth;
  }
  plan.steps.push_back(std::move(step));
}

void add_redistribution(Plan& plan, const Machine& machine, const std::string& name,
                        const Shape& shape, DType dtype, const Sharding& from, const Sharding& to) {
  if (same_owners(from, to, shape)) return;
  add_move(plan, machine, cat(name, " ", shape, ": ", from, " -> ", to), from.owner_boxes(shape),
           needs_of(to.owner_boxes(shape)), dtype);
}

void add_compute(Plan& plan, const Machine& machine, const std::string& text, double flops,
                 int64_t bytes, DType dtype, double efficiency) {
  PlanStep step;
  step.kind = StepKind::kCompute;
  step.text = text;
  step.flops = flops;
  step.seconds = compute_seconds(machine, flops / efficiency, bytes, dtype);
  plan.steps.push_back(std::move(step));
}

int64_t largest_block(const Shape& shape, DType dtype, const Sharding& sharding) {
  int64_t most = 0;
  for (const Box& box : sharding.owner_boxes(shape)) most = std::max(most, box.size());
  return most * itemsize(dtype);
}

Plan choose(std::vector<Plan> plans, const Machine& machine, std::string_view strategy) {
  std::vector<Candidate> candidates;
  std::set<std::string> known;
  const Plan* best = nullptr;
  const Plan* smallest = nullptr;
  for (const Plan& plan : plans) {
    const bool is_feasible = plan.memory_per_rank <= machine.memory;
    candidates.push_back({plan.strategy, plan.detail, plan.bytes(), plan.memory_per_rank,
                          plan.seconds(), is_feasible});
    known.insert(plan.strategy);
    if (!strategy.empty() && plan.strategy != strategy) continue;
    if (smallest == nullptr || plan.memory_per_rank < smallest->memory_per_rank) smallest = &plan;
    if (is_feasible && (best == nullptr || plan.seconds() < best->seconds())) best = &plan;
  }
  const std::string& op = plans.at(0).op;
  if (smallest == nullptr) {
    throw ExecutionError(
        cat(op, ": there is no strategy \"", strategy, "\"; possible here are ", join(known)));
  }
  if (best == nullptr) {
    throw MemoryError(cat(op, ": no plan fits the memory limit of ", format_bytes(machine.memory),
                          " a rank; the smallest (", smallest->strategy, ") needs ",
                          format_bytes(smallest->memory_per_rank)));
  }
  Plan chosen = *best;
  chosen.candidates = std::move(candidates);
  return chosen;
}

uint64_t Plan::hash() const { return hash_text(to_json()); }

}  // namespace cuop::dist
