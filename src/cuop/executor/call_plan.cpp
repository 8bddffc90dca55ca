#include "cuop/executor/call_plan.h"

#include <algorithm>
#include <utility>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::executor {
namespace {

[[noreturn]] void refuse(const std::string& op, int64_t smallest, int64_t limit) {
  throw MemoryError(cat(op, ": the smallest tiles need ", smallest, " bytes (",
                        format_bytes(smallest), ") on a device, ", limit, " may be used"),
                    {smallest, 0, limit, limit});
}

}  // namespace

bool CallPlan::is_feasible() const {
  return std::all_of(passes.begin(), passes.end(),
                     [](const TilePass& pass) { return pass.plan.is_feasible; });
}

int64_t CallPlan::memory() const {
  int64_t most = 0;
  for (const TilePass& pass : passes) most = std::max(most, pass.plan.memory);
  return most;
}

double CallPlan::seconds() const {
  double sum = 0;
  for (const TilePass& pass : passes) sum += static_cast<double>(pass.times) * pass.plan.seconds;
  return sum;
}

CallPlan at_once(const TilePlan& plan) {
  return {plan.op,         "at once", {{"at once", 1, plan}}, plan.limit, plan.smallest,
          plan.data_bytes, plan.floor};
}

CallPlan in_passes(const std::string& way, std::vector<TilePass> passes, const CallPlan& whole) {
  CallPlan plan = whole;
  plan.way = way;
  plan.smallest = 0;
  for (const TilePass& pass : passes) plan.smallest = std::max(plan.smallest, pass.plan.smallest);
  plan.passes = std::move(passes);
  return plan;
}

void check_feasible(const CallPlan& plan) {
  if (!plan.is_feasible()) refuse(plan.op, plan.smallest, plan.limit);
}

void check_feasible(const TilePlan& plan) {
  if (!plan.is_feasible) refuse(plan.op, plan.smallest, plan.limit);
}

}  // namespace cuop::executor
