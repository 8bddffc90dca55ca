#include "cuop/dist/exec/strict_plan.h"

#include <algorithm>
#include <set>

#include "cuop/core/text.h"
#include "cuop/dist/strict.h"

namespace cuop::dist {
namespace {

/// Whether some rank has all of it.
bool is_whole_somewhere(const Placement& x) {
  if (element_count(x.shape) == 0) return true;
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape);
  return std::find(owners.begin(), owners.end(), whole_box(x.shape)) != owners.end();
}

/// What the plan makes whole that lies in parts; "" when nothing.
std::string gathered_by(const Plan& plan, const CallOptions& options,
                        const std::vector<Placement>& inputs) {
  for (const PlanStep& step : plan.steps) {
    if (step.whole_on < 2) continue;  // one rank: its block of a result that lies in blocks
    return cat(step.text, " makes it whole on ", step.whole_on, " ranks (",
               format_bytes(step.bytes), " moved)");
  }
  const int rank = plan.outputs.at(0).sharding.single_rank();
  if (rank < 0 || options.output) return "";
  const auto parted = std::find_if_not(inputs.begin(), inputs.end(), is_whole_somewhere);
  if (parted == inputs.end()) return "";
  return cat(parted->name, ' ', parted->shape, ": ", parted->sharding, " -> on rank ", rank,
             " makes it whole there (", format_bytes(plan.bytes()), " moved)");
}

}  // namespace

std::shared_ptr<const Planned> planned_openly(const Operation& operation,
                                              const CallOptions& options,
                                              const std::vector<Placement>& inputs,
                                              const Machine& machine) {
  auto made = planned(operation, options, inputs, options.output, machine);
  if (!is_strict()) return made;
  const std::string reason = gathered_by(made->plan, options, inputs);
  if (reason.empty()) return made;
  std::set<std::string> others;
  CallOptions forced = options;
  for (const Candidate& candidate : made->plan.candidates) {
    if (candidate.strategy == forced.strategy || !candidate.is_feasible) continue;
    forced.strategy = candidate.strategy;
    const auto other = planned(operation, forced, inputs, options.output, machine);
    if (gathered_by(other->plan, options, inputs).empty()) others.insert(forced.strategy);
  }
  refuse_to_gather(operation.text, reason,
                   cat("redistribute, gather_all or gather before this call",
                       others.empty() ? "" : cat(", or force strategy ", join(others, " or "))));
}

}  // namespace cuop::dist
