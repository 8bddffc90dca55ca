#include "cuop/dist/plan/map_plan.h"

#include <algorithm>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

Plan plan_choice(const MapProblem& problem, const MapChoice& choice, const Machine& machine) {
  Plan plan{problem.op, choice.strategy, cat(choice.output), choice.output.mesh().size(),
            problem.inputs};
  const std::vector<Box> made = choice.output.owner_boxes(problem.shape);
  std::vector<int64_t> touched(made.size(), 0);  // bytes that the local work reads and writes
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const Placement& input = problem.inputs[i];
    const std::vector<Box> needed = needed_boxes(problem.needed, i, input.shape.ndim(), made);
    const std::vector<Box> owners = input.sharding.owner_boxes(input.shape);
    if (needed != owners) {
      add_move(plan, machine, cat(input.name, ' ', input.shape, ": ", input.sharding, " -> needed"),
               owners, needs_of(needed), input.dtype);
    }
    for (size_t rank = 0; rank < made.size(); ++rank) {
      touched[rank] += needed[rank].size() * itemsize(input.dtype);
    }
  }
  int64_t most_touched = 0;
  int64_t most_made = 0;
  for (size_t rank = 0; rank < made.size(); ++rank) {
    touched[rank] += made[rank].size() * itemsize(problem.dtype);
    most_touched = std::max(most_touched, touched[rank]);
    most_made = std::max(most_made, made[rank].size());
  }
  add_compute(plan, machine, cat(problem.op, " of the local parts"),
              problem.flops_per_element * static_cast<double>(most_made), most_touched,
              problem.dtype, problem.efficiency);
  add_output(plan, machine, {"result", problem.shape, problem.dtype, choice.output},
             problem.wanted);
  plan.memory_per_rank = most_touched;
  for (const Placement& input : problem.inputs) {
    plan.memory_per_rank += largest_block(input.shape, input.dtype, input.sharding);
  }
  return plan;
}

}  // namespace

Plan plan_map(const MapProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  if (common_rank(problem.inputs) >= 0) {
    plans.push_back(plan_choice(problem, {"root", problem.inputs[0].sharding}, machine));
  }
  for (const MapChoice& choice : problem.choices) {
    plans.push_back(plan_choice(problem, choice, machine));
  }
  return choose(std::move(plans), machine, strategy);
}

std::vector<Box> needed_boxes(const NeededBox& needed, size_t input, int input_ndim,
                              const std::vector<Box>& outputs) {
  std::vector<Box> boxes;
  for (const Box& output : outputs) {
    boxes.push_back(output.empty() ? empty_box(input_ndim) : needed(input, output));
  }
  return boxes;
}

int common_rank(const std::vector<Placement>& inputs) {
  const int rank = inputs.at(0).sharding.single_rank();
  const bool is_common = std::all_of(inputs.begin(), inputs.end(), [&](const Placement& input) {
    return input.sharding.single_rank() == rank;
  });
  return is_common ? rank : -1;
}

Sharding split_over_ranks(int ranks, int ndim, int dim) {
  return Sharding(Mesh::line(ranks), ndim == 0 ? Spec() : split_dim(ndim, dim));
}

namespace {

/// Grids of `ranks` over the dimensions from `first` on, after the axes that have been chosen.
void add_grids(int ranks, int ndim, const std::vector<SplitDim>& dims, size_t first, Dims shape,
               std::vector<Spec::Axes> split, std::vector<MapChoice>& choices) {
  if (ranks == 1) {
    if (shape.ndim() < 2) return;  // those are made by name
    std::vector<std::string> names;
    for (const SplitDim& each : dims) {
      if (!split[static_cast<size_t>(each.dim)].empty()) names.push_back(each.strategy);
    }
    choices.push_back({"grid", Sharding(Mesh(shape, names), Spec(std::move(split)))});
    return;
  }
  if (first == dims.size()) return;
  add_grids(ranks, ndim, dims, first + 1, shape, split, choices);
  shape.push_back(1);
  split[static_cast<size_t>(dims[first].dim)] = {dims[first].strategy};
  for (int parts = 2; parts <= ranks; ++parts) {
    if (ranks % parts != 0) continue;
    shape[shape.ndim() - 1] = parts;
    add_grids(ranks / parts, ndim, dims, first + 1, shape, split, choices);
  }
}

}  // namespace

std::vector<MapChoice> split_choices(int ranks, int ndim, const std::vector<SplitDim>& dims) {
  std::vector<MapChoice> choices;
  for (const auto& [dim, strategy] : dims) {
    choices.push_back({strategy, split_over_ranks(ranks, ndim, dim)});
  }
  add_grids(ranks, ndim, dims, 0, {}, std::vector<Spec::Axes>(static_cast<size_t>(ndim)), choices);
  return choices;
}

Box broadcast_source(const Box& output, const Shape& shape) {
  Box source = whole_box(shape);
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (shape[axis] != 1) {
      source.set_interval(axis, output.interval(axis + output.ndim() - shape.ndim()));
    }
  }
  return source;
}

}  // namespace cuop::dist
