#include "cuop/dist/plan/map_plan.h"

#include <algorithm>
#include <optional>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/overlap.h"

namespace cuop::dist {
namespace {

double efficiency_of(const MapProblem& problem, const Machine& machine) {
  if (problem.product) return product_efficiency(machine, *problem.product);
  return problem.speed == nullptr ? 1.0 : machine.*problem.speed;
}

/// Blocks of the result are made in chunks while the inputs of the next come, and they leave.
void make_in_chunks(Plan& plan, const Machine& machine, const MapProblem& problem,
                    const MapChoice& choice, const std::vector<std::vector<size_t>>& moved,
                    size_t compute, std::optional<double> others) {
  const auto in_chunks = [&](int64_t count) {
    return map_chunks(problem.needed, problem.inputs, choice.output, problem.shape, count);
  };
  const auto chunks = in_chunks(2);
  if (!chunks) return;
  std::vector<size_t> moves;
  for (size_t i = 0; i < moved.size(); ++i) {
    if (chunks->is_cut[i]) moves.insert(moves.end(), moved[i].begin(), moved[i].end());
  }
  for (size_t step = compute + 1; step < plan.steps.size(); ++step) moves.push_back(step);
  overlap_moves(
      plan, machine, moves, compute,
      most_chunks(choice.output.owner_boxes(problem.shape), chunks->axis),
      [&](int64_t count) { return in_chunks(count) == chunks; }, others);
}

Plan plan_choice(const MapProblem& problem, const MapChoice& choice, const Machine& machine) {
  Plan plan{problem.op, choice.strategy, cat(choice.output), choice.output.mesh().size(),
            problem.inputs};
  const std::vector<Box> made = choice.output.owner_boxes(problem.shape);
  std::vector<std::vector<size_t>> moved(problem.inputs.size());  // the steps of each input
  std::vector<int64_t> touched(made.size(), 0);  // bytes that the local work reads and writes
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const Placement& input = problem.inputs[i];
    const std::vector<Box> needed = needed_boxes(problem.needed, i, input.shape.ndim(), made);
    const std::vector<Box> owners = input.sharding.owner_boxes(input.shape);
    if (needed != owners) {
      const std::string text =
          cat(input.name, ' ', input.shape, ": ", input.sharding, " -> needed");
      const size_t before = plan.steps.size();
      add_fetch(plan, machine, text, owners, needed, input.dtype, i);
      for (size_t step = before; step < plan.steps.size(); ++step) moved[i].push_back(step);
    }
    for (size_t rank = 0; rank < made.size(); ++rank) {
      touched[rank] += needed[rank].size() * itemsize(input.dtype);
    }
  }
  const size_t compute = plan.steps.size();
  int64_t most_touched = 0;
  int64_t most_made = 0;
  const int root = common_rank(problem.inputs);
  double others = 0.0;  // seconds of those that do not have the inputs
  const double efficiency = efficiency_of(problem, machine);
  for (size_t rank = 0; rank < made.size(); ++rank) {
    touched[rank] += made[rank].size() * itemsize(problem.dtype);
    most_touched = std::max(most_touched, touched[rank]);
    most_made = std::max(most_made, made[rank].size());
    if (static_cast<int>(rank) == root) continue;
    const double flops = problem.flops_per_element * static_cast<double>(made[rank].size());
    others = std::max(others,
                      compute_seconds(machine, flops / efficiency, touched[rank], problem.dtype));
  }
  add_compute(plan, machine, cat(problem.op, " of the local parts"),
              problem.flops_per_element * static_cast<double>(most_made), most_touched,
              problem.dtype, efficiency);
  add_output(plan, machine, {"result", problem.shape, problem.dtype, choice.output},
             problem.wanted);
  if (problem.may_chunk) {
    const bool is_apart = is_rooted(problem.inputs, problem.wanted) && problem.wanted;
    make_in_chunks(plan, machine, problem, choice, moved, compute,
                   is_apart ? std::optional(others) : std::nullopt);
  }
  plan.memory_per_rank = most_touched;
  if (chunks_of(plan) > 1) {  // of which one is put into the block when it is made
    plan.memory_per_rank += divide_up(most_made * itemsize(problem.dtype), chunks_of(plan));
  }
  for (const Placement& input : problem.inputs) {
    plan.memory_per_rank += largest_block(input.shape, input.dtype, input.sharding);
  }
  return plan;
}

/// Bytes of an input that the whole result depends on, as far as that is known.
double read_bytes(const MapProblem& problem, size_t i) {
  if (problem.skips_elements || element_count(problem.shape) == 0) return 0.0;
  return static_cast<double>(problem.needed(i, whole_box(problem.shape)).size() *
                             itemsize(problem.inputs[i].dtype));
}

/// Inputs each of whose elements goes into one element of the result.
std::vector<size_t> one_to_one(const MapProblem& problem) {
  std::vector<size_t> found;
  for (size_t i = 0; i < problem.inputs.size() && problem.is_elementwise; ++i) {
    const bool is_equal = element_count(problem.inputs[i].shape) == element_count(problem.shape);
    if (is_equal) found.push_back(i);
  }
  return found;
}

/// Elements of the result come to where they are wanted themselves or as what they are made of.
double least_received(const MapProblem& problem) {
  double most = 0.0;
  if (!problem.wanted) return most;
  const std::vector<Box> wanted = problem.wanted->owner_boxes(problem.shape);
  for (const size_t i : one_to_one(problem)) {
    const Placement& input = problem.inputs[i];
    const std::vector<Box> owners = input.sharding.owner_boxes(input.shape);
    const std::vector<Box> needed = needed_boxes(problem.needed, i, input.shape.ndim(), wanted);
    for (size_t rank = 0; rank < owners.size(); ++rank) {
      const int64_t foreign = needed[rank].size() - intersect(needed[rank], owners[rank]).size();
      const int64_t item = std::min(itemsize(input.dtype), itemsize(problem.dtype));
      most = std::max(most, static_cast<double>(foreign * item));
    }
  }
  return most;
}

/// What goes with the elements of the result that a rank makes: all of each input that it takes one
/// element of.
TiedBytes tied_inputs(const MapProblem& problem) {
  TiedBytes tied;
  std::vector<double> own(static_cast<size_t>(problem.inputs[0].sharding.mesh().size()), 0.0);
  for (const size_t i : one_to_one(problem)) {
    const Placement& input = problem.inputs[i];
    tied.bytes += read_bytes(problem, i);
    if (largest_share(input.sharding, input.shape) == 0.0) continue;  // others have the same
    const std::vector<Box> owners = input.sharding.owner_boxes(input.shape);
    for (size_t rank = 0; rank < own.size(); ++rank) {
      own[rank] += static_cast<double>(owners[rank].size() * itemsize(input.dtype));
    }
  }
  if (tied.bytes > 0.0) tied.share = *std::max_element(own.begin(), own.end()) / tied.bytes;
  return tied;
}

Floor floor_of(const MapProblem& problem, const Machine& machine) {
  const auto count = static_cast<double>(element_count(problem.shape));
  const double flops = count * problem.flops_per_element;
  const double made = count * static_cast<double>(itemsize(problem.dtype));
  double bytes = made;
  for (size_t i = 0; i < problem.inputs.size(); ++i) bytes += read_bytes(problem, i);
  const auto work_on = [&](double touched) {
    return least_of(machine, flops, touched, problem.dtype, efficiency_of(problem, machine));
  };
  Least least = work_on(bytes);
  least.in = tied_inputs(problem);
  least.in.seconds = work_on(made + least.in.bytes).seconds;
  least.out = {made, wanted_share(problem.wanted, problem.shape), least.in.seconds};
  least.received = least_received(problem);
  least.is_rooted = is_rooted(problem.inputs, problem.wanted);
  return floor_of(least, machine, problem.inputs[0].sharding.mesh().size());
}

/// The choice with a larger block for the rank that has all inputs, of this share of the dimension:
/// nothing of it travels, and the rank works while it sends. Nothing where several dimensions are
/// split, or that block would not be larger.
std::optional<MapChoice> with_share(const MapProblem& problem, const MapChoice& choice,
                                    double share) {
  const int root = common_rank(problem.inputs), ranks = choice.output.mesh().size();
  const Spec spec = choice.output.spec().padded_to(problem.shape.ndim());
  std::vector<int> split;
  for (int dim = 0; dim < problem.shape.ndim(); ++dim) {
    if (!spec.axes(dim).empty()) split.push_back(dim);
  }
  const Mesh& mesh = choice.output.mesh();
  if (split.size() != 1 || mesh.ndim() != 1 || mesh.idle() > 0) {
    return std::nullopt;
  }
  const int64_t length = problem.shape[split[0]];
  const auto kept = static_cast<int64_t>(share * static_cast<double>(length));
  if (kept * ranks <= length) return std::nullopt;
  std::vector<int64_t> sizes;
  for (int rank = 0, other = 0; rank < ranks; ++rank) {
    sizes.push_back(rank == root ? kept
                                 : split_evenly({0, length - kept}, ranks - 1, other++).length());
  }
  return MapChoice{choice.strategy, choice.output.with_blocks(split[0], std::move(sizes))};
}

/// Plans with larger blocks for the rank that has all inputs.
void add_unequal(std::vector<Plan>& plans, const MapProblem& problem, const MapChoice& choice,
                 const Machine& machine) {
  constexpr int kMostRanks = 16;  // of more its share is small in any case
  if (!problem.may_chunk || !is_rooted(problem.inputs, problem.wanted)) return;
  if (choice.output.mesh().size() > kMostRanks) return;
  std::optional<Sharding> last;  // of a short dimension several shares are the same blocks
  for (const double share : {0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8}) {
    const auto unequal = with_share(problem, choice, share);
    if (!unequal || unequal->output == last) continue;
    plans.push_back(plan_choice(problem, *unequal, machine));
    last = unequal->output;
  }
}

}  // namespace

Plan plan_map(const MapProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  if (common_rank(problem.inputs) >= 0) {
    plans.push_back(plan_choice(problem, {"root", problem.inputs[0].sharding}, machine));
  }
  for (const MapChoice& choice : problem.choices) {
    plans.push_back(plan_choice(problem, choice, machine));
    add_unequal(plans, problem, choice, machine);
  }
  return choose(std::move(plans), machine, strategy, floor_of(problem, machine));
}

std::vector<Box> needed_boxes(const NeededBox& needed, size_t input, int input_ndim,
                              const std::vector<Box>& outputs) {
  std::vector<Box> boxes;
  for (const Box& output : outputs) {
    boxes.push_back(output.empty() ? empty_box(input_ndim) : needed(input, output));
  }
  return boxes;
}

std::optional<MapChunks> map_chunks(const NeededBox& needed, const std::vector<Placement>& inputs,
                                    const Sharding& output, const Shape& shape, int64_t count) {
  const Spec spec = output.spec().padded_to(shape.ndim());
  MapChunks chunks;
  while (chunks.axis < shape.ndim() && spec.axes(chunks.axis).empty()) ++chunks.axis;
  if (chunks.axis == shape.ndim() || output.single_rank() >= 0) return std::nullopt;
  const std::vector<Box> made = output.owner_boxes(shape);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int ndim = inputs[i].shape.ndim();
    const std::vector<Box> whole = needed_boxes(needed, i, ndim, made);
    std::vector<int64_t> read(made.size(), 0);  // elements of a rank's chunks
    bool is_same = true;
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      const std::vector<Box> parts =
          needed_boxes(needed, i, ndim, chunk_of(made, chunks.axis, count, chunk));
      for (size_t rank = 0; rank < made.size(); ++rank) {
        read[rank] += parts[rank].size();
        is_same = is_same && (parts[rank].empty() || parts[rank] == whole[rank]);
      }
    }
    bool is_cut = true;
    for (size_t rank = 0; rank < made.size(); ++rank) {
      is_cut = is_cut && read[rank] == whole[rank].size();
    }
    if (!is_cut && !is_same) return std::nullopt;
    chunks.is_cut.push_back(!is_same);
  }
  return chunks;
}

int common_rank(const std::vector<Placement>& inputs) {
  const int rank = inputs.at(0).sharding.single_rank();
  const bool is_common = std::all_of(inputs.begin(), inputs.end(), [&](const Placement& input) {
    return input.sharding.single_rank() == rank;
  });
  return is_common ? rank : -1;
}

bool is_rooted(const std::vector<Placement>& inputs, const std::optional<Sharding>& wanted) {
  for (const Placement& input : inputs) {
    if (element_count(input.shape) == 0) return false;
  }
  const int rank = common_rank(inputs);
  return rank >= 0 && (!wanted || wanted->single_rank() == rank);
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
