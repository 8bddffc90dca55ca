#include "cuop/executor/tile_plan.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/tile_cuts_internal.h"

namespace cuop::executor {
namespace {

struct Choice {
  std::string strategy;
  dist::Sharding output;
  bool is_by_steps = false;

  /// What tells grids apart.
  std::string detail() const {
    const dist::Mesh& mesh = output.mesh();
    if (mesh.ndim() < 2) return "";
    std::vector<std::string> parts;
    for (const std::string& name : mesh.names()) {
      parts.push_back(cat(name, " in ", mesh.axis_size(name)));
    }
    return cat("(", join(parts), ")");
  }
};

/// The ways in which devices may share the work.
std::vector<Choice> choices(const TileProblem& problem, int devices) {
  const dist::Mesh line = dist::Mesh::line(devices);
  const int ndim = problem.output.shape.ndim();
  std::vector<Choice> result{{"one", dist::Sharding::on_rank(line, 0)}};
  if (devices == 1) return result;
  std::vector<int> dims;
  for (const int dim : problem.cut_dims) {
    if (problem.output.shape[dim] > 1) dims.push_back(dim);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int a, int b) { return problem.output.shape[a] > problem.output.shape[b]; });
  search_outermost(dims);
  if (dims.size() > kSearched) dims.resize(kSearched);
  std::vector<dist::SplitDim> named;
  for (const int dim : dims) named.push_back({dim, cat("dim ", dim)});
  for (const dist::MapChoice& choice : dist::split_choices(devices, ndim, named)) {
    result.push_back({choice.strategy, choice.output});
  }
  if (problem.summed > 1) {
    result.push_back({"steps", dist::Sharding::replicated(line), true});
  }
  return result;
}

}  // namespace

int64_t TileProblem::input_bytes() const {
  int64_t bytes = 0;
  for (const Header& input : inputs) bytes += bytes_of(input);
  return bytes;
}

int64_t TileProblem::output_bytes() const { return bytes_of(output); }

Box TilePlan::share(const TileProblem& problem, int device) const {
  return output.owner_box(problem.output.shape, device);
}

Interval TilePlan::range(const TileProblem& problem, int device) const {
  const Interval whole{0, std::max<int64_t>(1, problem.summed)};
  return is_by_steps ? split_evenly(whole, devices(), device) : whole;
}

Box TilePlan::read(const TileProblem& problem, int device, size_t input) const {
  const Box mine = share(problem, device);
  const Interval summed = range(problem, device);
  const Shape& shape = problem.inputs[input].shape;
  if (mine.empty() || summed.length() == 0) return empty_box(shape.ndim());
  // Rows outside of the array may be any of its rows.
  const bool is_within = problem.outside_of(input) == TileProblem::Outside::kNothing;
  return is_within ? problem.needed(input, mine, summed) : whole_box(shape);
}

Reader TilePlan::reader(const TileProblem& problem, int device, size_t input) const {
  const Box mine = read(problem, device, input);
  Reader reader;
  const bool is_shared = !mine.empty() && problem.wire.form == dist::Wire::Form::kPlain &&
                         problem.outside_of(input) == TileProblem::Outside::kNothing;
  for (int other = 0; other < devices() && is_shared; ++other) {
    if (other == device || read(problem, other, input) != mine) continue;
    ++reader.count;
    reader.index += other < device ? 1 : 0;
  }
  return reader;
}

int64_t TilePlan::tiles() const { return product_of(cuts); }

namespace {

/// The best plan for work that takes what the problem's figures say.
TilePlan plan_with_figures(const TileProblem& problem, const TileMachine& machine,
                           int64_t least_tiles) {
  TilePlan best;
  bool has_one = false;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  std::vector<TileCandidate> candidates;
  for (const Choice& choice : choices(problem, machine.devices)) {
    TilePlan plan;
    plan.op = problem.op;
    plan.strategy = choice.strategy;
    plan.detail = choice.detail();
    plan.output = choice.output;
    plan.is_by_steps = choice.is_by_steps;
    plan.limit = machine.memory;
    Share share{plan.share(problem, 0), plan.range(problem, 0)};
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      share.readers.push_back(machine.between > 0 ? plan.reader(problem, 0, i).count : 1);
    }
    const bool is_empty = share.box.empty() || share.range.length() == 0;
    FoundCuts found;
    if (is_empty) {
      found = {Cuts(static_cast<size_t>(share.box.ndim()) + 1, 1), {}, {}, true, 0};
      for (int dim = 0; dim < share.box.ndim(); ++dim) found.order.push_back(dim);
    } else {
      found = best_cuts(problem, machine, share, least_tiles);
      plan.smallest = found.smallest;
    }
    smallest = std::min(smallest, plan.smallest);
    for (int dim = 0; dim < share.box.ndim(); ++dim) {
      plan.lengths.push_back(share.box.interval(dim).length());
    }
    plan.lengths.push_back(share.range.length());
    plan.busy = 0;
    for (int device = 0; device < machine.devices; ++device) {
      const bool has_range = plan.range(problem, device).length() > 0;
      plan.busy += has_range && !plan.share(problem, device).empty() ? 1 : 0;
    }
    plan.steps = found.cuts.back();
    plan.cuts.assign(found.cuts.begin(), found.cuts.end() - 1);
    plan.order = found.order;
    plan.memory = found.costs.memory;
    plan.is_feasible = found.is_feasible;
    plan.uploaded = found.costs.uploaded;
    plan.shared = found.costs.shared;
    plan.downloaded = found.costs.downloaded;
    plan.compute = found.costs.compute;
    plan.seconds = found.costs.seconds;
    if (plan.is_by_steps) {  // the states come to one rank, which adds them up
      const int64_t bytes = element_count(problem.output.shape) * problem.element_bytes();
      plan.seconds += static_cast<double>(bytes) * machine.devices / machine.download;
    }
    const bool is_better = plan.is_feasible != best.is_feasible ? plan.is_feasible
                           : plan.is_feasible                   ? plan.seconds < best.seconds
                                                                : plan.memory < best.memory;
    candidates.push_back({plan.strategy, plan.detail, plan.tiles(), plan.steps, plan.memory,
                          plan.smallest, plan.seconds, plan.is_feasible});
    if (!has_one || is_better) best = plan;
    has_one = true;
  }
  best.smallest = smallest;
  best.candidates = std::move(candidates);
  best.result = problem.output;
  best.data_bytes = problem.input_bytes() + problem.output_bytes();
  const double devices = machine.devices;
  best.floor = std::max(
      {static_cast<double>(problem.input_bytes()) / (machine.upload * devices),
       static_cast<double>(problem.output_bytes()) / (machine.download * devices),
       dist::compute_seconds(machine.device, problem.flops / devices, 0, problem.computed)});
  best.figures = problem.figures;
  return best;
}

/// Of the memory a library may have a part for its workspace where that is worth its while.
int64_t workspace_of(const TileProblem& problem, int64_t memory) {
  constexpr int64_t kPart = 16, kLeast = 64 << 10;
  const int64_t part = std::min(problem.most_workspace, memory / kPart);
  return part < kLeast ? problem.least_workspace
                       : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(part)));
}

/// The best plan by the figures of the machine, as its devices are linked.
TilePlan plan_as_linked(const TileProblem& given, const TileMachine& machine, int64_t least_tiles) {
  TileProblem problem = given;
  problem.figures = machine.figures;
  if (!machine.figures.is_gpu() || problem.most_workspace == 0) {
    return plan_with_figures(problem, machine, least_tiles);
  }
  // Without what only saves time tiles are the largest, and the least memory suffices.
  problem.figures.spare = {.has_copies = false, .workspace = problem.least_workspace};
  const TilePlan sparing = plan_with_figures(problem, machine, least_tiles);
  problem.figures.spare = {.workspace = workspace_of(problem, machine.memory)};
  TilePlan quick = plan_with_figures(problem, machine, least_tiles);
  quick.smallest = sparing.smallest;
  const bool is_quick = quick.is_feasible && quick.seconds <= sparing.seconds;
  return is_quick ? quick : sparing;
}

}  // namespace

TilePlan plan_tiles(const TileProblem& problem, const TileMachine& machine, int64_t least_tiles) {
  TilePlan linked = plan_as_linked(problem, machine, least_tiles);
  if (linked.shared == 0) return linked;
  // Devices that bring all by themselves do not wait for each other: on two H200s work that hides
  // its moves anyway took 1 to 2 % longer where they shared them.
  constexpr double kSurely = 0.95;
  TileMachine apart = machine;
  apart.between = 0;
  TileProblem alike = problem;
  alike.figures = linked.figures;
  TilePlan alone = plan_with_figures(alike, apart, least_tiles);
  alone.smallest = linked.smallest;
  return linked.seconds < kSurely * alone.seconds ? linked : alone;
}

std::vector<Tile> tiles_of(const TileProblem& problem, const TilePlan& plan, int device) {
  const Box share = plan.share(problem, device);
  const Interval range = plan.range(problem, device);
  if (share.empty() || range.length() == 0) return {};
  std::vector<Interval> steps;
  for (int64_t i = 0; i < plan.steps; ++i) {
    const Interval step = cut(range, plan.steps, i);
    if (step.length() > 0) steps.push_back(step);
  }
  std::vector<Tile> tiles{{share, steps}};
  for (const int dim : plan.order) {
    const int64_t count = plan.cuts[static_cast<size_t>(dim)];
    std::vector<Tile> finer;
    for (const Tile& tile : tiles) {
      for (int64_t i = 0; i < count; ++i) {
        Tile part = tile;
        part.output.set_interval(dim, cut(share.interval(dim), count, i));
        if (!part.output.empty()) finer.push_back(std::move(part));
      }
    }
    tiles = std::move(finer);
  }
  return tiles;
}

int64_t tile_bytes(const TileProblem& problem, const Tile& tile) {
  int64_t most = 0;
  for (const Interval& step : tile.steps) {
    int64_t bytes = problem.scratch_bytes(tile.output, step);
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      bytes += bytes_of(problem.inputs[i], problem.needed(i, tile.output, step));
    }
    most = std::max(most, bytes);
  }
  return most + tile.output.size() * problem.element_bytes() * (tile.steps.size() > 1 ? 2 : 1);
}

Halved halved(const TileProblem& problem, const Tile& tile) {
  Halved best{{tile}, false};
  int64_t least = std::numeric_limits<int64_t>::max();
  const auto consider = [&](std::vector<Tile> tiles, bool is_by_step) {
    const int64_t bytes = tile_bytes(problem, tiles[0]);
    if (bytes >= least) return;
    least = bytes;
    best = {std::move(tiles), is_by_step};
  };
  for (const int dim : problem.cut_dims) {
    const Interval whole = tile.output.interval(dim);
    if (whole.length() < 2) continue;
    std::vector<Tile> tiles{tile, tile};
    for (size_t i = 0; i < 2; ++i) {
      tiles[i].output.set_interval(dim, split_evenly(whole, 2, static_cast<int64_t>(i)));
    }
    consider(std::move(tiles), false);
  }
  std::vector<Interval> steps;
  for (const Interval& step : tile.steps) {
    const int64_t parts = std::min<int64_t>(2, step.length());
    for (int64_t i = 0; i < parts; ++i) steps.push_back(split_evenly(step, parts, i));
  }
  if (steps.size() > tile.steps.size()) consider({{tile.output, steps}}, true);
  return best;
}

}  // namespace cuop::executor
