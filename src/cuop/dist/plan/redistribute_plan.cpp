#include "cuop/dist/plan/redistribute_plan.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

/// Bytes of the rank that lacks most of its new part. Of sparse tensors nobody knows how few
/// numbers travel.
double least_received(const Placement& x, const Sharding& to, const Wire& wire) {
  if (wire.form == Wire::Form::kSparse) return 0.0;
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape), wanted = to.owner_boxes(x.shape);
  int64_t most = 0;
  for (size_t rank = 0; rank < owners.size(); ++rank) {
    most = std::max(most, wanted[rank].size() - intersect(wanted[rank], owners[rank]).size());
  }
  return static_cast<double>(most * itemsize(wire.planned_dtype(x.dtype)));
}

}  // namespace

Plan plan_redistribute(const Placement& x, const Sharding& to, const Machine& machine,
                       const Wire& wire) {
  const char* const who = "redistribute";
  wire.check_carries(x.dtype, who);
  for (const Sharding* each : {&x.sharding, &to}) each->check_fits(x.shape, who);
  const int ranks = x.sharding.mesh().size();
  if (to.mesh().size() != ranks) {
    throw ShapeError(
        cat(who, ": ", to.mesh(), " is not a mesh of the ", ranks, " ranks of the tensor"));
  }
  Plan plan{who, "move", cat(to), ranks, {x}};
  const DType travelling = wire.planned_dtype(x.dtype);
  add_redistribution(plan, machine, x.name, x.shape, travelling, x.sharding, to);
  for (PlanStep& step : plan.steps) step.whole_on = 0;  // the caller asks for it
  if (travelling != x.dtype && !plan.steps.empty()) {   // read twice, written on both sides
    const int64_t elements = plan.steps[0].rank_bytes / itemsize(travelling);
    add_compute(plan, machine, cat("what travels rounded to ", travelling, " and back"), 0,
                4 * elements * itemsize(x.dtype), x.dtype);
  }
  const Placement there{x.name, x.shape, x.dtype, to};
  plan.outputs = {there, there};
  plan.memory_per_rank =
      largest_block(x.shape, x.dtype, x.sharding) + largest_block(x.shape, x.dtype, to);
  Least least;
  least.received = least_received(x, to, wire);
  plan.floor = floor_of(least, machine, ranks);
  return plan;
}

}  // namespace cuop::dist
