#include "cuop/executor/tile_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::executor {
namespace {

/// Seconds that a tile costs beside its bytes and its flops: calls, launches, waits.
constexpr double kTileSeconds = 4e-5;
/// Dimensions and steps whose cuts are searched; others are whole, or cut all through where nothing
/// else fits.
constexpr size_t kSearched = 3;

/// What one device has to make.
struct Share {
  Box box;
  Interval range;
};

/// Cuts of a share: the dimensions of the output, then the steps.
using Cuts = std::vector<int64_t>;

int64_t bytes_of(const Header& header, const Box& box) {
  return box.size() * itemsize(header.dtype);
}

/// The product, or the largest number: of the finest cuts there may be more tiles than fit in 64
/// bits, and nobody makes them.
int64_t saturated(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int64_t product_of(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{1}, saturated);
}

/// One way to cut a share, and what it costs.
class CutShare {
 public:
  CutShare(const TileProblem& problem, const TileMachine& machine, const Share& share)
      : problem_(problem), machine_(machine), share_(share), ndim_(share.box.ndim()) {}

  int ndim() const { return ndim_; }
  int64_t length(int axis) const {
    return axis < ndim_ ? share_.box.interval(axis).length() : share_.range.length();
  }

  struct Costs {
    int64_t memory = 0;
    int64_t uploaded = 0;
    int64_t downloaded = 0;
    double compute = 0;
    double seconds = 0;
  };

  Costs costs(const Cuts& cuts, const std::vector<int>& order) const {
    const Box first = tile(cuts, -1);
    const Interval step = step_of(cuts, 0);
    const int64_t tiles = product_of(cuts);
    const int64_t steps = cuts.back();
    Costs result;
    for (size_t i = 0; i < problem_.inputs.size(); ++i) {
      const Box box = problem_.needed(i, first, step);
      int64_t bytes = bytes_of(problem_.inputs[i], box);
      int64_t loads = 1, loops = 1;
      const auto enter = [&](int64_t count, const Box& next) {
        loops = saturated(loops, count);
        if (count == 1) return;
        bytes = std::max(bytes, bytes_of(problem_.inputs[i], next));
        if (next != box) loads = loops;
      };
      for (const int dim : order) {
        enter(cuts[static_cast<size_t>(dim)], problem_.needed(i, tile(cuts, dim), step));
      }
      enter(steps, problem_.needed(i, first, step_of(cuts, std::min<int64_t>(1, steps - 1))));
      const DType dtype = problem_.inputs[i].dtype;
      const int64_t sent = bytes / itemsize(dtype) * itemsize(problem_.wire.planned_dtype(dtype));
      result.uploaded = saturated_sum(result.uploaded, saturated(loads, sent));
      result.memory += bytes * (loads > 1 ? 2 : 1);  // the next comes while this one is used
    }
    const int64_t made = first.size() * problem_.element_bytes();
    // One is taken away while the next is made; a step is added to the sum of those before.
    result.memory += made * ((tiles > steps ? 2 : 1) + (steps > 1 ? 1 : 0));
    if (problem_.scratch) result.memory += problem_.scratch(first, step);
    result.downloaded = share_.box.size() * itemsize(problem_.output.dtype);
    add_times(result, tiles);
    return result;
  }

 private:
  /// The first tile, or of the second ones the neighbour along a dimension: halos are cut at edges,
  /// so that the first may need less.
  Box tile(const Cuts& cuts, int neighbour) const {
    Box box = share_.box;
    for (int dim = 0; dim < ndim_; ++dim) {
      const int64_t count = cuts[static_cast<size_t>(dim)];
      const int64_t index = dim == neighbour ? std::min<int64_t>(1, count - 1) : 0;
      box.set_interval(dim, split_evenly(share_.box.interval(dim), count, index));
    }
    return box;
  }
  Interval step_of(const Cuts& cuts, int64_t index) const {
    return split_evenly(share_.range, cuts.back(), index);
  }

  void add_times(Costs& costs, int64_t tiles) const {
    const double whole = static_cast<double>(element_count(problem_.output.shape)) *
                         static_cast<double>(std::max<int64_t>(1, problem_.summed));
    const double mine =
        static_cast<double>(share_.box.size()) * static_cast<double>(share_.range.length());
    const double part = whole > 0 ? mine / whole : 0.0;
    costs.compute =
        dist::compute_seconds(machine_.device, problem_.flops * part / problem_.efficiency,
                              saturated_sum(costs.uploaded, costs.downloaded), problem_.computed);
    const double up = static_cast<double>(costs.uploaded) / machine_.upload;
    const double down = static_cast<double>(costs.downloaded) / machine_.download;
    // Bytes travel in one direction at a time while the device computes; the first tile has nothing
    // to hide behind, nor has the last result.
    const double moved = up + down, longest = std::max(moved, costs.compute);
    const double rest = (moved + costs.compute - longest) / static_cast<double>(tiles);
    costs.seconds = longest + rest + static_cast<double>(tiles) * kTileSeconds;
  }

  const TileProblem& problem_;
  const TileMachine& machine_;
  const Share& share_;
  int ndim_;
};

/// 1, 2, 3, 4, 6, 8, 12, ... up to the length.
std::vector<int64_t> counts_up_to(int64_t length) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < length; count = std::max(count + 1, count * 4 / 3)) {
    counts.push_back(count);
  }
  counts.push_back(std::max<int64_t>(1, length));
  return counts;
}

struct Found {
  Cuts cuts;
  std::vector<int> order;
  CutShare::Costs costs;
  bool is_feasible = false;
};

class Search {
 public:
  Search(const TileProblem& problem, const TileMachine& machine, const Share& share,
         int64_t least_tiles)
      : share_(problem, machine, share), limit_(machine.memory) {
    for (const int dim : problem.cut_dims) {
      if (share_.length(dim) > 1) axes_.push_back(dim);
    }
    if (share_.length(share_.ndim()) > 1) axes_.push_back(share_.ndim());
    std::stable_sort(axes_.begin(), axes_.end(),
                     [&](int a, int b) { return share_.length(a) > share_.length(b); });
    cuts_ = Cuts(static_cast<size_t>(share_.ndim()) + 1, 1);
    const std::vector<int> searched = longest();
    least_tiles_ = std::min(least_tiles, product_of(finest(searched)));
  }

  /// Of the finest cuts.
  int64_t smallest() const { return share_.costs(finest(axes_), all_dims()).memory; }

  Found best() {
    const std::vector<int> searched = longest();
    // The shorter axes are cut all through, one after the other, where the long ones do not
    // suffice.
    for (size_t more = kSearched;; ++more) {
      if (share_.costs(finest(searched), all_dims()).memory <= limit_) break;
      if (more >= axes_.size()) {
        best_ = {finest(axes_), all_dims(), {}, false};
        best_.costs = share_.costs(best_.cuts, best_.order);
        return best_;
      }
      const int axis = axes_[more];
      cuts_[static_cast<size_t>(axis)] = share_.length(axis);
    }
    best_.costs.seconds = std::numeric_limits<double>::infinity();
    for (const std::vector<int>& order : orders(searched)) try_axes(searched, 0, order);
    return best_;
  }

 private:
  std::vector<int> longest() const {
    const auto count = static_cast<int64_t>(std::min(axes_.size(), kSearched));
    return {axes_.begin(), axes_.begin() + count};
  }
  std::vector<int> all_dims() const {
    std::vector<int> dims(static_cast<size_t>(share_.ndim()));
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
  }
  Cuts finest(const std::vector<int>& axes) const {
    Cuts cuts = cuts_;
    for (const int axis : axes) cuts[static_cast<size_t>(axis)] = share_.length(axis);
    return cuts;
  }

  /// Every order of the searched dimensions, those that are not searched around them.
  std::vector<std::vector<int>> orders(const std::vector<int>& searched) const {
    std::vector<int> dims, others;
    for (const int dim : all_dims()) {
      const bool is_searched = std::find(searched.begin(), searched.end(), dim) != searched.end();
      (is_searched ? dims : others).push_back(dim);
    }
    std::vector<std::vector<int>> result;
    do {
      result.push_back(others);
      result.back().insert(result.back().end(), dims.begin(), dims.end());
    } while (std::next_permutation(dims.begin(), dims.end()));
    return result;
  }

  /// Tries the counts of axes[at] and all behind it. More cuts need no more memory, so that of the
  /// last axis the fewest that fit are found by halving; some more of them begin to overlap sooner.
  void try_axes(const std::vector<int>& axes, size_t at, const std::vector<int>& order) {
    if (at == axes.size()) return consider(order);
    int64_t& cuts = cuts_[static_cast<size_t>(axes[at])];
    const std::vector<int64_t> counts = counts_up_to(share_.length(axes[at]));
    if (at + 1 < axes.size()) {
      for (const int64_t count : counts) {
        cuts = count;
        try_axes(axes, at + 1, order);
      }
    } else {
      const auto fits = [&](int64_t count) {
        cuts = count;
        return share_.costs(cuts_, order).memory <= limit_ && product_of(cuts_) >= least_tiles_;
      };
      auto count = std::partition_point(counts.begin(), counts.end(),
                                        [&](int64_t each) { return !fits(each); });
      for (int more = 0; more < 6 && count != counts.end(); ++more, ++count) {
        cuts = *count;
        consider(order);
      }
    }
    cuts = 1;
  }

  void consider(const std::vector<int>& order) {
    if (product_of(cuts_) < least_tiles_) return;
    const CutShare::Costs costs = share_.costs(cuts_, order);
    if (costs.memory > limit_ || costs.seconds >= best_.costs.seconds) return;
    best_ = {cuts_, order, costs, true};
  }

  CutShare share_;
  int64_t limit_;
  int64_t least_tiles_ = 1;
  std::vector<int> axes_;  // that may be cut, the longest first; share_.ndim() is the steps
  Cuts cuts_;
  Found best_;
};

struct Choice {
  std::string strategy;
  dist::Sharding output;
  bool is_by_steps = false;
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
  for (const Header& input : inputs) bytes += element_count(input.shape) * itemsize(input.dtype);
  return bytes;
}

int64_t TileProblem::output_bytes() const {
  return element_count(output.shape) * itemsize(output.dtype);
}

Box TilePlan::share(const TileProblem& problem, int device) const {
  return output.owner_box(problem.output.shape, device);
}

Interval TilePlan::range(const TileProblem& problem, int device) const {
  const Interval whole{0, std::max<int64_t>(1, problem.summed)};
  return is_by_steps ? split_evenly(whole, devices(), device) : whole;
}

int64_t TilePlan::tiles() const { return product_of(cuts); }

TilePlan plan_tiles(const TileProblem& problem, const TileMachine& machine, int64_t least_tiles) {
  TilePlan best;
  bool has_one = false;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  std::vector<TileCandidate> candidates;
  for (const Choice& choice : choices(problem, machine.devices)) {
    TilePlan plan;
    plan.op = problem.op;
    plan.strategy = choice.strategy;
    plan.output = choice.output;
    plan.is_by_steps = choice.is_by_steps;
    plan.limit = machine.memory;
    const Share share{plan.share(problem, 0), plan.range(problem, 0)};
    Search search(problem, machine, share, least_tiles);
    const bool is_empty = share.box.empty() || share.range.length() == 0;
    Found found;
    if (is_empty) {
      found = {Cuts(static_cast<size_t>(share.box.ndim()) + 1, 1), {}, {}, true};
      for (int dim = 0; dim < share.box.ndim(); ++dim) found.order.push_back(dim);
    } else {
      plan.smallest = search.smallest();
      found = search.best();
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
    candidates.push_back({plan.strategy, plan.tiles(), plan.steps, plan.memory, plan.smallest,
                          plan.seconds, plan.is_feasible});
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
  return best;
}

std::vector<Tile> tiles_of(const TileProblem& problem, const TilePlan& plan, int device) {
  const Box share = plan.share(problem, device);
  const Interval range = plan.range(problem, device);
  if (share.empty() || range.length() == 0) return {};
  std::vector<Interval> steps;
  for (int64_t i = 0; i < plan.steps; ++i) {
    const Interval step = split_evenly(range, plan.steps, i);
    if (step.length() > 0) steps.push_back(step);
  }
  std::vector<Tile> tiles{{share, steps}};
  for (const int dim : plan.order) {
    const int64_t count = plan.cuts[static_cast<size_t>(dim)];
    std::vector<Tile> finer;
    for (const Tile& tile : tiles) {
      for (int64_t i = 0; i < count; ++i) {
        Tile part = tile;
        part.output.set_interval(dim, split_evenly(share.interval(dim), count, i));
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
    int64_t bytes = problem.scratch ? problem.scratch(tile.output, step) : 0;
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
