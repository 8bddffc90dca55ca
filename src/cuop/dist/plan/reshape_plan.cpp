#include "cuop/dist/plan/reshape_plan.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {
namespace {

/// Neighbouring dimensions of the old and of the new shape that hold the same elements.
struct Group {
  int old_low, old_high, new_low, new_high;
};

std::vector<Group> groups_of(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  int i = 0, j = 0;
  while (i < from.ndim() || j < to.ndim()) {
    Group group{i, i, j, j};
    int64_t before = i < from.ndim() ? from[i++] : 1, after = j < to.ndim() ? to[j++] : 1;
    while (before != after) {
      if (before < after) {
        before *= from[i++];
      } else {
        after *= to[j++];
      }
    }
    group.old_high = i;
    group.new_high = j;
    groups.push_back(group);
  }
  return groups;
}

int64_t product_of(const Shape& shape, int low, int high) {
  int64_t product = 1;
  for (int dim = low; dim < high; ++dim) product *= shape[dim];
  return product;
}

/// What splits a dimension of the result.
struct SplitOf {
  int dim;
  Spec::Axes axes;
  std::vector<int64_t> sizes;
};

/// Of one split dimension, before which all of its group have size 1: the elements of a block are
/// one run, whose ends must be rows of the first longer dimension of the new ones.
std::optional<SplitOf> kept_split(const Sharding& sharding, const Shape& from, const Shape& to,
                                  const Group& group, int split) {
  if (product_of(from, group.old_low, split) != 1) return std::nullopt;
  int dim = group.new_low;
  while (dim < group.new_high && to[dim] == 1) ++dim;
  if (dim == group.new_high) --dim;
  if (dim < group.new_low) return std::nullopt;
  const int64_t inner = product_of(from, split + 1, group.old_high);
  const int64_t row = product_of(to, dim + 1, group.new_high);
  SplitOf result{dim, sharding.spec().axes(split), {}};
  for (const Interval& block : blocks_of(sharding, from, split)) {
    if (block.low * inner % row != 0 || block.high * inner % row != 0) return std::nullopt;
    result.sizes.push_back(block.length() * inner / row);
  }
  return result;
}

/// Splits of the dimensions of a group, where they can be kept.
std::optional<std::vector<SplitOf>> kept_splits(const Sharding& sharding, const Shape& from,
                                                const Shape& to, const Group& group) {
  std::vector<int> split;
  for (int dim = group.old_low; dim < group.old_high; ++dim) {
    if (!sharding.spec().axes(dim).empty()) split.push_back(dim);
  }
  std::vector<SplitOf> kept;
  if (split.empty()) return kept;
  if (split.size() > 1) return std::nullopt;
  const std::optional<SplitOf> only = kept_split(sharding, from, to, group, split[0]);
  if (!only) return std::nullopt;
  kept.push_back(*only);
  return kept;
}

/// Blocks of the first dimension that has a row for every rank, or of the longest; a single element
/// stays on the rank that has it.
Sharding block_sharding(const ReshapeProblem& problem) {
  const int ranks = problem.x.sharding.mesh().size();
  const Shape& shape = problem.shape;
  if (element_count(shape) == 1) {
    const std::vector<Box> owners = problem.x.sharding.owner_boxes(problem.x.shape);
    const auto owner =
        std::find_if(owners.begin(), owners.end(), [](const Box& box) { return !box.empty(); });
    return Sharding::on_rank(Mesh::line(ranks), static_cast<int>(owner - owners.begin()));
  }
  int best = 0;
  for (int dim = 0; dim < shape.ndim() && shape[best] < ranks; ++dim) {
    if (shape[dim] > shape[best]) best = dim;
  }
  return split_over_ranks(ranks, shape.ndim(), best);
}

/// Appends the boxes of elements low to high of the dimensions from `dim` on, below `prefix`.
void add_boxes(const Shape& shape, Box prefix, int dim, int64_t low, int64_t high, int64_t& offset,
               std::vector<Run>& runs) {
  if (low >= high) return;
  if (dim == shape.ndim()) {
    runs.push_back({prefix, offset++});
    return;
  }
  const int64_t inner = product_of(shape, dim + 1, shape.ndim());
  const auto add_row = [&](int64_t row, int64_t from, int64_t to) {
    Box inside = prefix;
    inside.set_interval(dim, {row, row + 1});
    add_boxes(shape, inside, dim + 1, from, to, offset, runs);
  };
  int64_t first = low / inner;
  const int64_t last = high / inner, left = high % inner;
  if (first == last) return add_row(first, low % inner, left);
  if (low % inner != 0) add_row(first++, low % inner, inner);
  if (first < last) {
    Box rows = prefix;
    rows.set_interval(dim, {first, last});
    runs.push_back({rows, offset});
    offset += rows.size();
  }
  if (left > 0) add_row(last, 0, left);
}

Plan plan_choice(const ReshapeProblem& problem, const Machine& machine, const char* strategy,
                 const Sharding& made) {
  const Placement& x = problem.x;
  Plan plan{"reshape", strategy, cat(made), made.mesh().size(), {x}};
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape);
  const std::vector<Box> blocks = made.owner_boxes(problem.shape);
  const int64_t bytes = largest_block(problem.shape, x.dtype, made);
  if (strategy == std::string_view("blocks")) {
    add_move(plan, machine, cat("runs of x ", x.shape, " in the order of ", problem.shape), owners,
             reshape_needs(blocks, x.shape, problem.shape), x.dtype);
    plan.memory_per_rank = bytes;
  }
  add_output(plan, machine, {"result", problem.shape, x.dtype, made}, problem.wanted);
  plan.memory_per_rank += largest_block(x.shape, x.dtype, x.sharding);
  return plan;
}

/// What of the wanted blocks their ranks do not have of x, in bytes of the one that lacks most.
double least_received(const ReshapeProblem& problem) {
  if (!problem.wanted) return 0.0;
  const Placement& x = problem.x;
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape);
  std::vector<int64_t> lacks(owners.size(), 0);
  const std::vector<Box> wanted = problem.wanted->owner_boxes(problem.shape);
  for (const auto& [rank, box] : reshape_needs(wanted, x.shape, problem.shape)) {
    const auto number = static_cast<size_t>(rank);
    lacks[number] += box.size() - intersect(box, owners[number]).size();
  }
  return static_cast<double>(*std::max_element(lacks.begin(), lacks.end()) * itemsize(x.dtype));
}

}  // namespace

std::optional<Sharding> kept_sharding(const Sharding& sharding, const Shape& from,
                                      const Shape& to) {
  if (sharding.single_rank() >= 0 || from == to) return sharding;
  if (element_count(to) == 0) return std::nullopt;
  std::vector<Spec::Axes> dims(static_cast<size_t>(to.ndim()));
  std::vector<SplitOf> splits;
  for (const Group& group : groups_of(from, to)) {
    const auto kept = kept_splits(sharding, from, to, group);
    if (!kept) return std::nullopt;
    splits.insert(splits.end(), kept->begin(), kept->end());
  }
  for (const SplitOf& split : splits) dims[static_cast<size_t>(split.dim)] = split.axes;
  Sharding result(sharding.mesh(), Spec(std::move(dims)));
  for (const SplitOf& split : splits) result = in_blocks(result, to, split.dim, split.sizes);
  return result;
}

std::vector<Run> runs_of(const Box& block, const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  if (block.empty()) return runs;
  int whole = to.ndim();  // from there on the block has all of each dimension
  while (whole > 0 && block.interval(whole - 1) == Interval{0, to[whole - 1]}) --whole;
  const int split = std::max(whole - 1, 0);
  const int64_t inner = product_of(to, split + 1, to.ndim());
  const Interval rows = to.ndim() == 0 ? Interval{0, 1} : block.interval(split);
  Dims outer = block.low;  // of the dimensions before
  for (int64_t offset = 0; offset < block.size();) {
    int64_t first = 0;
    for (int dim = 0; dim < split; ++dim) first = first * to[dim] + outer[dim];
    if (to.ndim() > 0) first *= to[split];
    add_boxes(from, whole_box(from), 0, (first + rows.low) * inner, (first + rows.high) * inner,
              offset, runs);
    for (int dim = split - 1; dim >= 0; --dim) {
      if (++outer[dim] < block.high[dim]) break;
      outer[dim] = block.low[dim];
    }
  }
  return runs;
}

std::vector<Need> reshape_needs(const std::vector<Box>& blocks, const Shape& from,
                                const Shape& to) {
  std::vector<Need> needs;
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    for (const Run& run : runs_of(blocks[rank], from, to)) {
      needs.push_back({static_cast<int>(rank), run.box});
    }
  }
  return needs;
}

Plan plan_reshape(const ReshapeProblem& problem, const Machine& machine,
                  std::string_view strategy) {
  std::vector<Plan> plans;
  const auto kept = kept_sharding(problem.x.sharding, problem.x.shape, problem.shape);
  if (kept) plans.push_back(plan_choice(problem, machine, "keep", *kept));
  if (!kept || strategy == "blocks") {
    plans.push_back(plan_choice(problem, machine, "blocks", block_sharding(problem)));
  }
  Least least;
  least.received = least_received(problem);
  return choose(std::move(plans), machine, strategy,
                floor_of(least, machine, problem.x.sharding.mesh().size()));
}

}  // namespace cuop::dist
