#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/tile_cuts_internal.h"

namespace cuop::executor {
namespace {

/// Seconds that a tile costs beside its bytes and its flops: calls, launches, waits.
constexpr double kTileSeconds = 1.5e-4;
/// Part of the time of moves beside arithmetic that shows all the same: both take the device's
/// memory, and neither goes on evenly.
constexpr double kShownMoves = 0.1;
/// Tiles of long dimensions begin at multiples of these, which suit kernels and pages.
constexpr int64_t kGrains[] = {256, 32};

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

/// The stretches of a row-major array's memory that a box of it lies in.
double stretches_of(const Shape& array, const Box& box) {
  int64_t length = 1;
  for (int axis = array.ndim() - 1; axis >= 0; --axis) {
    length *= box.interval(axis).length();
    if (box.interval(axis).length() < array[axis]) break;
  }
  return length == 0 ? 0.0 : static_cast<double>(box.size() / length);
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

  /// What no cuts take less than: all bytes once, both ways at a time, and the arithmetic.
  double least_seconds() const {
    CutCosts whole = costs(Cuts(static_cast<size_t>(ndim_) + 1, 1), {});
    const double up = upload_seconds(whole), down = download_seconds(whole);
    return std::max(whole.compute, both_ways(up, down));
  }

  CutCosts costs(const Cuts& cuts, const std::vector<int>& order) const {
    const Box first = tile(cut, cuts, -1);
    const Interval step = step_of(cut, cuts, 0);
    const int64_t tiles = product_of(cuts);
    const int64_t steps = cuts.back();
    CutCosts result;
    double first_upload = 0;
    std::vector<Loads> loads;
    for (size_t i = 0; i < problem_.inputs.size(); ++i) {
      const DType dtype = problem_.inputs[i].dtype;
      const auto sent = [&](int64_t bytes) {
        return bytes / itemsize(dtype) * itemsize(problem_.wire.planned_dtype(dtype));
      };
      const Reading largest = reading(i, cut, cuts, order);
      // All tiles together are as long as if they were even.
      const Reading usual = reading(i, split_evenly, cuts, order);
      first_upload += seconds_of(sources(i, sent(largest.bytes))) + largest.gathered;
      const Sources usually = sources(i, sent(usual.bytes));
      result.gathered += static_cast<double>(usual.loads) * usual.gathered;
      result.uploaded = saturated_sum(result.uploaded, saturated(usual.loads, usually.host));
      result.shared = saturated_sum(result.shared, saturated(usual.loads, usually.devices));
      loads.push_back({usual.loads, seconds_of(usually) + usual.gathered});
      // The next comes while this one is used.
      result.memory += largest.bytes * (largest.loads > 1 ? 2 : 1);
    }
    const int64_t made = first.size() * problem_.element_bytes();
    // One is taken away while the next is made; a step is added to the sum of those before.
    result.memory += made * ((tiles > steps ? 2 : 1) + (steps > 1 ? 1 : 0));
    result.memory += problem_.scratch_bytes(first, step);
    result.downloaded = share_.box.size() * itemsize(problem_.output.dtype);
    const double last_scattered = machine_.stretch * placed_stretches(first);
    result.scattered = last_scattered * static_cast<double>(tiles) / static_cast<double>(steps);
    const double last_download =
        static_cast<double>(first.size() * itemsize(problem_.output.dtype)) / machine_.download +
        last_scattered;
    add_times(result, cuts, problem_.pace_of(first, step), first_upload, last_download,
              std::move(loads));
    return result;
  }

  /// Whether the speed of a tile depends on its lengths.
  bool has_pace() const { return problem_.pace != nullptr; }

 private:
  /// The stretches of the output's memory, in which its axes may have another order.
  double placed_stretches(const Box& made) const {
    const Shape& shape = problem_.output.shape;
    const Dims& order = problem_.placed_order;
    if (order.empty()) return stretches_of(shape, made);
    return stretches_of(permute(whole_box(shape), order).shape(), permute(made, order));
  }

  /// How an interval falls into parts.
  using Parts = Interval (*)(Interval whole, int64_t parts, int64_t index);

  /// What an input brings: so many bytes at a time, so often.
  struct Reading {
    int64_t bytes = 0;
    int64_t loads = 1;
    double gathered = 0;  ///< seconds for the stretches that the bytes lie in
  };
  Reading reading(size_t input, Parts parts, const Cuts& cuts,
                  const std::vector<int>& order) const {
    const Box first = tile(parts, cuts, -1);
    const Interval step = step_of(parts, cuts, 0);
    const Box box = problem_.needed(input, first, step);
    const Header& array = problem_.inputs[input];
    Reading result{bytes_of(array, box), 1, machine_.stretch * stretches_of(array.shape, box)};
    int64_t loops = 1;
    const auto enter = [&](int64_t count, const Box& next) {
      loops = saturated(loops, count);
      if (count == 1) return;
      result.bytes = std::max(result.bytes, bytes_of(array, next));
      if (next != box) result.loads = loops;
    };
    for (const int dim : order) {
      enter(cuts[static_cast<size_t>(dim)], problem_.needed(input, tile(parts, cuts, dim), step));
    }
    const int64_t second = std::min<int64_t>(1, cuts.back() - 1);
    enter(cuts.back(), problem_.needed(input, first, step_of(parts, cuts, second)));
    return result;
  }

  /// Bytes by where a device gets them.
  struct Sources {
    int64_t host = 0;
    int64_t devices = 0;
  };
  Sources sources(size_t input, int64_t bytes) const {
    const int readers = share_.readers[input];
    if (!is_shared(readers, bytes)) return {bytes, 0};
    const int64_t own = divide_up(bytes, readers);
    return {own, bytes - own};
  }
  double seconds_of(const Sources& bytes) const {
    const double here = static_cast<double>(bytes.host) / machine_.upload;
    return bytes.devices == 0 ? here : here + static_cast<double>(bytes.devices) / machine_.between;
  }

  double upload_seconds(const CutCosts& costs) const {
    return seconds_of({costs.uploaded, costs.shared}) + costs.gathered;
  }
  double download_seconds(const CutCosts& costs) const {
    return static_cast<double>(costs.downloaded) / machine_.download + costs.scattered;
  }

  /// The first tile, or of the second ones the neighbour along a dimension: halos are cut at edges,
  /// so that the first may need less.
  Box tile(Parts parts, const Cuts& cuts, int neighbour) const {
    Box box = share_.box;
    for (int dim = 0; dim < ndim_; ++dim) {
      const int64_t count = cuts[static_cast<size_t>(dim)];
      const int64_t index = dim == neighbour ? std::min<int64_t>(1, count - 1) : 0;
      box.set_interval(dim, parts(share_.box.interval(dim), count, index));
    }
    return box;
  }
  Interval step_of(Parts parts, const Cuts& cuts, int64_t index) const {
    return parts(share_.range, cuts.back(), index);
  }

  /// Seconds of moves there and back at a time, of which each would take so long by itself.
  double both_ways(double up, double down) const {
    return std::max(up, down) + (1 - machine_.duplex) * std::min(up, down);
  }

  /// How often an input is brought, and how long that takes.
  struct Loads {
    int64_t times = 0;
    double seconds = 0;
  };

  /// Seconds from the first work to the end of the last, of cuts whose work takes so long each.
  /// While one works the next one's inputs come and a result goes, which is there behind the steps
  /// of the first tile. An outer loop's inputs come all at once: what is longer than the work that
  /// they hide behind is waited for.
  double pipelined(const Cuts& cuts, double work, std::vector<Loads> loads, double download) const {
    std::sort(loads.begin(), loads.end(),
              [](const Loads& a, const Loads& b) { return a.times > b.times; });
    double seconds = work, upload = 0;
    int64_t left = product_of(cuts) - 1;  // behind the first, that bring what is not counted yet
    int64_t without_result = cuts.back() - 1;
    for (size_t i = 0; i <= loads.size() && left > 0; ++i) {
      const int64_t more = i < loads.size() ? std::max<int64_t>(0, loads[i].times - 1) : 0;
      const int64_t count = left - std::min(left, more);
      const int64_t quiet = std::min(count, without_result);
      seconds += static_cast<double>(quiet) * std::max(work, upload) +
                 static_cast<double>(count - quiet) * std::max(work, both_ways(upload, download));
      left -= count;
      without_result -= quiet;
      if (i < loads.size()) upload += loads[i].seconds;
    }
    return seconds;
  }

  void add_times(CutCosts& costs, const Cuts& cuts, double pace, double first_upload,
                 double last_download, std::vector<Loads> loads) const {
    const double whole = static_cast<double>(element_count(problem_.output.shape)) *
                         static_cast<double>(std::max<int64_t>(1, problem_.summed));
    const double mine =
        static_cast<double>(share_.box.size()) * static_cast<double>(share_.range.length());
    const double part = whole > 0 ? mine / whole : 0.0;
    const double efficiency =
        problem_.speed == nullptr ? problem_.efficiency : machine_.device.*problem_.speed;
    const int64_t moved_bytes =
        saturated_sum(saturated_sum(costs.uploaded, costs.shared), costs.downloaded);
    costs.compute =
        dist::compute_seconds(machine_.device, problem_.flops * part / (efficiency * pace),
                              moved_bytes, problem_.computed);
    // Each step but the first reads the sum and what is added to it, and writes the sum.
    const int64_t added = saturated(cuts.back() - 1, 3 * problem_.element_bytes());
    costs.compute += dist::compute_seconds(machine_.device, 0, saturated(added, share_.box.size()),
                                           problem_.computed);
    const double up = upload_seconds(costs), down = download_seconds(costs);
    // What the first tile reads has nothing to hide behind, nor has the last result.
    const int64_t tiles = product_of(cuts);
    const auto count = static_cast<double>(tiles);
    const double later = std::max(0.0, down - last_download);
    // Stretches take the host's time, not the device's memory.
    const double moved =
        both_ways(std::max(0.0, up - first_upload), later) - costs.gathered - costs.scattered;
    // Results go beside all tiles but the first.
    const double download = later / static_cast<double>(std::max<int64_t>(1, tiles - cuts.back()));
    costs.seconds = first_upload + last_download +
                    pipelined(cuts, costs.compute / count, std::move(loads), download) +
                    kShownMoves * std::clamp(moved, 0.0, costs.compute) + count * kTileSeconds;
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
    search_outermost(axes_);
    cuts_ = Cuts(static_cast<size_t>(share_.ndim()) + 1, 1);
    const std::vector<int> searched = longest();
    least_tiles_ = std::min(least_tiles, product_of(finest(searched)));
  }

  /// Of the finest cuts.
  int64_t smallest() const { return share_.costs(finest(axes_), all_dims()).memory; }

  FoundCuts best() {
    const std::vector<int> searched = longest();
    // The shorter axes are cut all through, one after the other, where the long ones do not
    // suffice.
    for (size_t more = kSearched;; ++more) {
      if (share_.costs(finest(searched), all_dims()).memory <= limit_) break;
      if (more >= axes_.size()) {
        best_ = {finest(axes_), all_dims(), {}, false, 0};
        best_.costs = share_.costs(best_.cuts, best_.order);
        return best_;
      }
      const int axis = axes_[more];
      cuts_[static_cast<size_t>(axis)] = share_.length(axis);
    }
    best_.costs.seconds = std::numeric_limits<double>::infinity();
    least_seconds_ = share_.least_seconds();
    for (const std::vector<int>& order : orders(searched)) try_axes(searched, 0, order);
    if (share_.has_pace()) refine(searched);
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
  /// last axis the fewest that fit are found by halving; more of them begin to overlap sooner,
  /// until there are too many.
  void try_axes(const std::vector<int>& axes, size_t at, const std::vector<int>& order) {
    if (at == axes.size()) {
      consider(order);
      return;
    }
    int64_t& cuts = cuts_[static_cast<size_t>(axes[at])];
    std::vector<int64_t> counts = counts_up_to(share_.length(axes[at]));
    const auto can_win = [&](int64_t count) {
      cuts = count;
      return least_seconds_ + static_cast<double>(product_of(cuts_)) * kTileSeconds <
             best_.costs.seconds;
    };
    if (at + 1 < axes.size()) {
      for (const int64_t count : counts) {
        if (!can_win(count)) break;
        try_axes(axes, at + 1, order);
      }
    } else {
      counts.erase(std::partition_point(counts.begin(), counts.end(), can_win), counts.end());
      const auto fits = [&](int64_t count) {
        cuts = count;
        return share_.costs(cuts_, order).memory <= limit_ && product_of(cuts_) >= least_tiles_;
      };
      auto count = std::partition_point(counts.begin(), counts.end(),
                                        [&](int64_t each) { return !fits(each); });
      if (count != counts.begin() && count != counts.end()) {
        // The fewest that fit lie between this count and the one before.
        int64_t low = count[-1], high = *count;
        while (high - low > 1) {
          const int64_t middle = low + (high - low) / 2;
          (fits(middle) ? high : low) = middle;
        }
        cuts = high;
        consider(order);
      }
      double before = std::numeric_limits<double>::infinity();
      for (int worse = 0; worse < 2 && count != counts.end(); ++count) {
        cuts = *count;
        const double seconds = consider(order);
        worse = seconds < before ? 0 : worse + 1;
        before = seconds;
      }
    }
    cuts = 1;
  }

  /// Tries the counts around the best ones: the speed of tiles goes up and down with their lengths.
  void refine(const std::vector<int>& axes) {
    constexpr int64_t kTried = 32;
    for (const int axis : axes) {
      const FoundCuts found = best_;
      cuts_ = found.cuts;
      int64_t& count = cuts_[static_cast<size_t>(axis)];
      const int64_t most = std::min(share_.length(axis), count + count / 3);
      const int64_t step = std::max<int64_t>(1, count / kTried);
      for (count -= count / 4; count <= most; count += step) consider(found.order);
    }
  }

  /// Takes the cuts where they are the best so far; their seconds.
  double consider(const std::vector<int>& order) {
    if (product_of(cuts_) < least_tiles_) return std::numeric_limits<double>::infinity();
    const CutCosts costs = share_.costs(cuts_, order);
    const bool is_best = costs.memory <= limit_ && costs.seconds < best_.costs.seconds;
    if (is_best) best_ = {cuts_, order, costs, true, 0};
    return costs.seconds;
  }

  CutShare share_;
  int64_t limit_;
  int64_t least_tiles_ = 1;
  double least_seconds_ = 0;  ///< of all cuts, but for what tiles cost by their number
  std::vector<int> axes_;     // that may be cut, the searched first; share_.ndim() is the steps
  Cuts cuts_;
  FoundCuts best_;
};

}  // namespace

void search_outermost(std::vector<int>& axes) {
  if (axes.size() <= kSearched) return;
  const auto outermost = std::min_element(axes.begin(), axes.end());
  const auto last = axes.begin() + static_cast<std::ptrdiff_t>(kSearched) - 1;
  if (outermost > last) std::rotate(last, outermost, outermost + 1);
}

int64_t product_of(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{1}, saturated);
}

Interval cut(Interval whole, int64_t parts, int64_t index) {
  constexpr int64_t kGrainsOfAPart = 4;
  for (const int64_t grain : kGrains) {
    if (whole.length() / grain / kGrainsOfAPart < parts) continue;
    const Interval grains = split_evenly({0, divide_up(whole.length(), grain)}, parts, index);
    return {whole.low + grains.low * grain, std::min(whole.high, whole.low + grains.high * grain)};
  }
  return split_evenly(whole, parts, index);
}

FoundCuts best_cuts(const TileProblem& problem, const TileMachine& machine, const Share& share,
                    int64_t least_tiles) {
  Search search(problem, machine, share, least_tiles);
  const int64_t smallest = search.smallest();
  FoundCuts found = search.best();
  found.smallest = smallest;
  return found;
}

}  // namespace cuop::executor
