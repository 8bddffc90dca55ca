#include "cuop/dist/plan/pencil_plan.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

/// Sharding::on_rank for "root", else whole slices along `dim`.
Sharding slices(const Sharding& x, const std::string& strategy, int dim) {
  return strategy == "root" ? x : Sharding(Mesh::line(x.mesh().size()), split_dim(2, dim));
}

Plan plan_strategy(const PencilProblem& problem, const Machine& machine,
                   const std::string& strategy) {
  const Shape& shape = problem.x.shape;
  const Sharding rows = slices(problem.x.sharding, strategy, 0);
  const Sharding columns = slices(problem.x.sharding, strategy, 1);
  Plan plan{problem.op, strategy, "", rows.mesh().size()};
  add_input(plan, machine, problem.x, rows);
  int64_t most_bytes = 0;
  for (int pass = 0; pass < problem.passes; ++pass) {
    // Rows, columns, and for four passes columns and rows again.
    const bool is_along_rows = pass == 0 || pass == 3;
    const Sharding& here = is_along_rows ? rows : columns;
    if (pass == 1 || pass == 3) {
      add_redistribution(plan, machine, "half-transformed", shape, problem.working,
                         pass == 1 ? rows : columns, here);
    }
    const int64_t bytes = largest_block(shape, problem.working, here);
    const double count =
        static_cast<double>(bytes) / static_cast<double>(itemsize(problem.working));
    const double length = static_cast<double>(std::max<int64_t>(shape[is_along_rows ? 1 : 0], 2));
    add_compute(plan, machine, is_along_rows ? "transform the rows" : "transform the columns",
                5.0 * count * std::log2(length), 2 * bytes, problem.working, kFftEfficiency);
    most_bytes = std::max(most_bytes, bytes);
  }
  const Sharding& made = problem.passes == 4 ? rows : columns;
  add_output(plan, machine, {"result", shape, problem.result, made}, problem.wanted);
  plan.memory_per_rank = largest_block(shape, problem.x.dtype, problem.x.sharding) + 3 * most_bytes;
  return plan;
}

}  // namespace

Plan plan_pencil(const PencilProblem& problem, const Machine& machine, std::string_view strategy) {
  if (problem.x.shape.ndim() != 2) {
    throw ShapeError(
        cat(problem.op, ": a tensor of 2 dimensions is needed, given ", problem.x.shape));
  }
  std::vector<Plan> plans;
  if (problem.x.sharding.single_rank() >= 0) {
    plans.push_back(plan_strategy(problem, machine, "root"));
  }
  plans.push_back(plan_strategy(problem, machine, "pencil"));
  return choose(std::move(plans), machine, strategy);
}

Sharding whole_rows(const Plan& plan) { return plan.inputs.at(0).sharding; }

Sharding whole_columns(const Plan& plan) {
  return slices(plan.inputs.at(0).sharding, plan.strategy, 1);
}

}  // namespace cuop::dist
