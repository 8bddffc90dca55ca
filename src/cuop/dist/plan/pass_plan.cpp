#include "cuop/dist/plan/pass_plan.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

Plan plan_choice(const PassProblem& problem, const PassChoice& choice, const Machine& machine) {
  Placement here = problem.x;
  Plan plan{problem.op, choice.strategy, choice.detail, here.sharding.mesh().size()};
  int64_t most_bytes = 0;
  for (const Pass& pass : choice.passes) {
    if (plan.inputs.empty()) {
      add_input(plan, machine, here, pass.at);
    } else {
      add_redistribution(plan, machine, here.name, here.shape, here.dtype, here.sharding, pass.at);
    }
    const Placement made{"half-transformed", pass.shape, pass.dtype, pass.at};
    const int64_t read = largest_block(here.shape, here.dtype, pass.at);
    const int64_t written = largest_block(made.shape, made.dtype, pass.at);
    const double count =
        static_cast<double>(std::max(read / itemsize(here.dtype), written / itemsize(made.dtype)));
    double flops = 0;
    for (const int axis : pass.axes) {
      const int64_t length = std::max({here.shape[axis], made.shape[axis], int64_t{2}});
      flops += 5.0 * count * std::log2(static_cast<double>(length));
    }
    add_compute(plan, machine, cat("transform along ", join(pass.axes)), flops, read + written,
                pass.dtype, kFftEfficiency);
    plan.steps.back().axes = pass.axes;
    plan.steps.back().made = made;
    most_bytes = std::max(most_bytes, read + 2 * written);
    here = made;
  }
  add_output(plan, machine, {"result", here.shape, problem.result, here.sharding}, problem.wanted);
  const Placement& x = problem.x;
  plan.memory_per_rank = largest_block(x.shape, x.dtype, x.sharding) + most_bytes;
  return plan;
}

}  // namespace

Plan plan_passes(const PassProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  for (const PassChoice& choice : problem.choices) {
    plans.push_back(plan_choice(problem, choice, machine));
  }
  return choose(std::move(plans), machine, strategy);
}

}  // namespace cuop::dist
