#include "cuop/dist/plan/reduce_plan.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {
namespace {

Shape result_shape(const ReduceProblem& problem) {
  Shape shape;
  for (int dim = 0; dim < problem.x.shape.ndim(); ++dim) {
    if (!has_axis(problem.axes, dim)) {
      shape.push_back(problem.x.shape[dim]);
    } else if (problem.keepdims) {
      shape.push_back(1);
    }
  }
  return shape;
}

/// Where the result of x under `x_sharding` is merged when nothing else is wanted: split as x's
/// dimensions that stay, the first of them also over the mesh axes of those that go.
Sharding merged_sharding(const ReduceProblem& problem, const Sharding& x_sharding) {
  if (x_sharding.single_rank() >= 0) return x_sharding;
  std::vector<Spec::Axes> dims;
  std::map<int, std::vector<int64_t>> blocks;
  Spec::Axes freed;
  int first_kept = -1;
  for (int dim = 0; dim < problem.x.shape.ndim(); ++dim) {
    const Spec::Axes& axes = x_sharding.spec().axes(dim);
    if (has_axis(problem.axes, dim)) {
      freed.insert(freed.end(), axes.begin(), axes.end());
      if (problem.keepdims) dims.push_back({});
    } else {
      if (first_kept < 0) first_kept = static_cast<int>(dims.size());
      const auto given = x_sharding.blocks().find(dim);
      if (given != x_sharding.blocks().end()) {
        blocks[static_cast<int>(dims.size())] = given->second;
      }
      dims.push_back(axes);
    }
  }
  if (first_kept >= 0 && !freed.empty()) {
    Spec::Axes& axes = dims[static_cast<size_t>(first_kept)];
    axes.insert(axes.end(), freed.begin(), freed.end());
    blocks.erase(first_kept);  // its blocks are split further
  }
  const Mesh& mesh = x_sharding.mesh();
  const bool is_split =
      std::any_of(dims.begin(), dims.end(), [](const Spec::Axes& axes) { return !axes.empty(); });
  if (!is_split) return Sharding::replicated(Mesh::line(mesh.size()));  // on idle ranks too
  Sharding result(mesh, Spec(std::move(dims)));
  for (const auto& [dim, sizes] : blocks) result = result.with_blocks(dim, sizes);
  return result;
}

/// The boxes of states that make each rank's part of the result.
std::vector<Box> state_wanted(const Placement& result, const std::vector<int>& axes, bool keepdims,
                              int64_t state_bytes) {
  std::vector<Box> boxes;
  for (const Box& part : result.sharding.owner_boxes(result.shape)) {
    Box box;
    for (int dim = 0; dim < result.shape.ndim(); ++dim) {
      if (keepdims && has_axis(axes, dim)) continue;
      box.low.push_back(part.low[dim]);
      box.high.push_back(part.high[dim]);
    }
    box.low.push_back(0);
    box.high.push_back(part.empty() ? 0 : state_bytes);
    boxes.push_back(box);
  }
  return boxes;
}

/// A box of states with one more dimension before the others.
Box counted(int64_t index, const Box& states) {
  Box box;
  box.low.push_back(index);
  box.high.push_back(index + 1);
  for (int dim = 0; dim < states.ndim(); ++dim) {
    box.low.push_back(states.low[dim]);
    box.high.push_back(states.high[dim]);
  }
  return box;
}

/// What one of several ranks has of a box of states, whole states always.
Box share_of(const Box& states, int64_t parts, int64_t index) {
  const int last = states.ndim() - 1;  // the bytes of a state
  if (last == 0) return index == 0 ? states : empty_box(states.ndim());
  Box share = states;
  share.set_interval(0, split_evenly(states.interval(0), parts, index));
  return share;
}

/// The one rank that wants something; -1 where there are several.
int64_t only_wanted_by(const std::vector<Box>& wanted) {
  int64_t only = -1;
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    if (wanted[rank].empty()) continue;
    if (only >= 0) return -1;
    only = static_cast<int64_t>(rank);
  }
  return only;
}

/// Groups worth a look: 0, those near the root of the number of ranks, and the ranks of a host.
/// Others than 0 only where all ranks have states of all of the result.
std::vector<int64_t> merge_groups(const std::vector<Box>& owners, const Machine& machine) {
  std::vector<int64_t> groups{0};
  const auto ranks = static_cast<int64_t>(owners.size());
  const bool are_alike = std::all_of(owners.begin(), owners.end(), [&](const Box& box) {
    return !box.empty() && box == owners[0];
  });
  constexpr int64_t kFew = 8;  // of which one stage has few messages, too
  if (!are_alike || ranks < kFew || owners[0].ndim() == kMaxDims) return groups;
  int64_t root = 1;
  for (int64_t each = 2; each * each <= ranks; ++each) {
    if (ranks % each == 0) root = each;
  }
  for (const int64_t group : {root, ranks / root, machine.ranks_per_host}) {
    const bool divides = group > 1 && group < ranks && ranks % group == 0;
    if (divides && std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  return groups;
}

Plan plan_choice(const ReduceProblem& problem, const Machine& machine, const std::string& strategy,
                 const Sharding& folded, const std::vector<Box>& owners, int64_t group) {
  Plan plan{problem.op, strategy,
            cat(folded, group > 0 ? cat(", merged in groups of ", group, " ranks") : ""),
            folded.mesh().size()};
  plan.settings["group"] = group;
  const Placement result{"result", result_shape(problem), problem.result,
                         problem.wanted ? *problem.wanted : merged_sharding(problem, folded)};
  plan.outputs = {result, result};
  add_input(plan, machine, problem.x, folded);
  const Placement& x = plan.inputs[0];
  const int64_t bytes = largest_block(x.shape, x.dtype, folded);
  add_compute(plan, machine, cat("fold over axes (", join(problem.axes), ")"),
              static_cast<double>(bytes / itemsize(x.dtype)), bytes, x.dtype);
  int64_t states = 0;
  for (const MergeStage& stage :
       merge_stages(owners, result, problem.axes, problem.keepdims, problem.state_bytes, group)) {
    add_move(plan, machine, cat("merge states of ", problem.state_bytes, " bytes"), stage.owners,
             needs_of(stage.wanted), DType::kUInt8, Sources::kAll);
    if (plan.steps.back().messages == 0) plan.steps.pop_back();
    for (size_t rank = 0; rank < stage.owners.size(); ++rank) {
      states = std::max(states, stage.owners[rank].size() + 2 * stage.wanted[rank].size());
    }
  }
  plan.memory_per_rank = largest_block(x.shape, x.dtype, problem.x.sharding) +
                         (same_owners(problem.x.sharding, folded, x.shape) ? 0 : bytes) + states;
  return plan;
}

/// The longest dimension that is reduced, or that is not; -1 when there is none.
int longest_dim(const ReduceProblem& problem, bool reduced) {
  int longest = -1;
  for (int dim = 0; dim < problem.x.shape.ndim(); ++dim) {
    if (has_axis(problem.axes, dim) != reduced) continue;
    if (longest < 0 || problem.x.shape[dim] > problem.x.shape[longest]) longest = dim;
  }
  return longest;
}

/// Of a result that is wanted somewhere: bytes of those elements that depend on what others have.
double least_received(const ReduceProblem& problem) {
  if (!problem.wanted) return 0.0;
  const Placement result{"result", result_shape(problem), problem.result, *problem.wanted};
  const int64_t item =
      std::min({itemsize(problem.x.dtype), itemsize(problem.result), problem.state_bytes});
  const std::vector<Box> wanted = state_wanted(result, problem.axes, problem.keepdims, 1);
  const std::vector<Box> owners = problem.x.sharding.owner_boxes(problem.x.shape);
  int64_t most = 0;
  for (size_t rank = 0; rank < owners.size(); ++rank) {
    bool has_all = true;  // along the axes that go
    Box kept;
    for (int dim = 0; dim < problem.x.shape.ndim(); ++dim) {
      const Interval own = owners[rank].interval(dim);
      if (has_axis(problem.axes, dim)) {
        has_all = has_all && own.length() == problem.x.shape[dim];
      } else {
        kept.low.push_back(own.low);
        kept.high.push_back(own.high);
      }
    }
    kept.low.push_back(0);
    kept.high.push_back(owners[rank].empty() ? 0 : 1);
    const int64_t here = has_all ? intersect(wanted[rank], kept).size() : 0;
    most = std::max(most, (wanted[rank].size() - here) * item);
  }
  return element_count(problem.x.shape) == 0 ? 0.0 : static_cast<double>(most);
}

Floor floor_of(const ReduceProblem& problem, const Machine& machine) {
  const Placement& x = problem.x;
  const auto count = static_cast<double>(element_count(x.shape));
  const double bytes = count * static_cast<double>(itemsize(x.dtype));
  Least least = least_of(machine, count, bytes, x.dtype);
  least.in = {bytes, largest_share(x.sharding, x.shape), least.seconds};
  least.received = least_received(problem);
  least.is_rooted = is_rooted({x}, problem.wanted);
  return floor_of(least, machine, x.sharding.mesh().size());
}

}  // namespace

Plan plan_reduce(const ReduceProblem& problem, const Machine& machine, std::string_view strategy) {
  const Sharding& as_is = problem.x.sharding;
  std::vector<Plan> plans;
  const auto add = [&](const char* name, const Sharding& folded) {
    const Placement x{problem.x.name, problem.x.shape, problem.x.dtype, folded};
    const std::vector<Box> owners = state_owners(x, problem.axes, problem.state_bytes);
    for (const int64_t group : merge_groups(owners, machine)) {
      plans.push_back(plan_choice(problem, machine, name, folded, owners, group));
    }
  };
  add(as_is.single_rank() >= 0 ? "root" : "keep", as_is);
  const int kept = longest_dim(problem, false);
  const int reduced = longest_dim(problem, true);
  const auto split = [&](int dim) {
    return split_over_ranks(as_is.mesh().size(), problem.x.shape.ndim(), dim);
  };
  if (kept >= 0) add("split_kept", split(kept));
  if (reduced >= 0) add("split_reduced", split(reduced));
  return choose(std::move(plans), machine, strategy, floor_of(problem, machine));
}

std::vector<Box> state_owners(const Placement& x, const std::vector<int>& axes,
                              int64_t state_bytes) {
  const std::vector<Box> parts = x.sharding.owner_boxes(x.shape);
  const int kept = x.shape.ndim() - static_cast<int>(axes.size());
  std::vector<Box> boxes;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const bool is_repeated =
        std::find(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(rank), parts[rank]) !=
        parts.begin() + static_cast<std::ptrdiff_t>(rank);
    if (parts[rank].empty() || is_repeated) {
      boxes.push_back(empty_box(kept + 1));
      continue;
    }
    Box box;
    for (int dim = 0; dim < x.shape.ndim(); ++dim) {
      if (has_axis(axes, dim)) continue;
      box.low.push_back(parts[rank].low[dim]);
      box.high.push_back(parts[rank].high[dim]);
    }
    box.low.push_back(0);
    box.high.push_back(state_bytes);
    boxes.push_back(box);
  }
  return boxes;
}

std::vector<MergeStage> merge_stages(const std::vector<Box>& owners, const Placement& result,
                                     const std::vector<int>& axes, bool keepdims,
                                     int64_t state_bytes, int64_t group) {
  const std::vector<Box> wanted = state_wanted(result, axes, keepdims, state_bytes);
  const auto ranks = static_cast<int64_t>(owners.size());
  if (group == 0) return {{owners, wanted}};
  const Box& whole = owners[0];
  const bool is_wanted_whole =
      std::all_of(wanted.begin(), wanted.end(), [&](const Box& box) { return box == whole; });
  const int64_t only = only_wanted_by(wanted);
  // What the rank at a place within its group has of what the group has merged.
  const auto share_at = [&](int64_t place) {
    if (is_wanted_whole) return whole;
    if (only >= 0) return place == only % group ? whole : empty_box(whole.ndim());
    return share_of(whole, group, place);
  };
  MergeStage within, among;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t place = rank % group;
    const Box share = share_at(place);
    within.owners.push_back(counted(rank / group, whole));
    within.wanted.push_back(counted(rank / group, share));
    const int64_t row = is_wanted_whole ? place : 0;
    among.owners.push_back(counted(row, share));
    among.wanted.push_back(counted(row, wanted[static_cast<size_t>(rank)]));
  }
  return {within, among};
}

}  // namespace cuop::dist
