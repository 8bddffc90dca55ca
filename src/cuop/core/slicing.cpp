#include "cuop/core/slicing.h"

#include <algorithm>
#include <tuple>

#include "cuop/core/interrupt.h"

namespace cuop {

namespace {

double elements(const Contraction& contraction, const Indices& indices) {
  double count = 1;
  for (const int index : indices) {
    count *= static_cast<double>(contraction.sizes[static_cast<size_t>(index)]);
  }
  return count;
}

/// A tensor that is taken may have to be copied, which most are not.
constexpr double kCopied = 0.125;

/// What a step has to do with memory at a time: what waits, what it takes (which may have to be
/// copied) and what it makes.
struct Held {
  double most = 0;  ///< elements of the step that has most
  double all = 0;   ///< of all steps
};

Held held_of(const Contraction& whole, const std::vector<ContractionStep>& steps,
             const std::vector<Indices>& tensors, const Slicing& slicing) {
  const Contraction slice = first_slice(whole, slicing);
  Held held;
  double waiting = elements(whole, whole.output);  // the result is there from the beginning
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_placed = i + 1 == steps.size() && !adds_slices(whole, slicing);
    const double made = is_placed ? 0.0 : elements(slice, steps[i].result);
    double here = waiting + made, gone = 0;
    for (const int part : {steps[i].left, steps[i].right}) {
      if (part < 0) continue;
      const double taken = elements(slice, tensors[static_cast<size_t>(part)]);
      here += kCopied * taken;
      if (static_cast<size_t>(part) >= whole.inputs.size()) gone += taken;
    }
    held.most = std::max(held.most, here);
    held.all += here;
    waiting += made - gone;
  }
  return held;
}

Slicing with_pieces(const Contraction& contraction, Slicing slicing, int index, int64_t pieces) {
  for (SlicedIndex& each : slicing) {
    if (each.index == index) {
      each.pieces = pieces;
      return slicing;
    }
  }
  const bool is_output = has_index(contraction.output, index);
  const auto at = std::find_if(slicing.begin(), slicing.end(), [&](const SlicedIndex& each) {
    return is_output && !has_index(contraction.output, each.index);
  });
  slicing.insert(at, {index, pieces});
  return slicing;
}

int64_t pieces_of(const Slicing& slicing, int index) {
  for (const SlicedIndex& each : slicing) {
    if (each.index == index) return each.pieces;
  }
  return 1;
}

}  // namespace

double slice_count(const Slicing& slicing) {
  double count = 1;
  for (const SlicedIndex& each : slicing) count *= static_cast<double>(each.pieces);
  return count;
}

Contraction first_slice(const Contraction& contraction, const Slicing& slicing) {
  return slice_within(contraction, slice_intervals(contraction, slicing, 0));
}

int64_t added_slices(const Contraction& contraction, const Slicing& slicing) {
  int64_t count = 1;
  for (const SlicedIndex& each : slicing) {
    if (!has_index(contraction.output, each.index)) count *= each.pieces;
  }
  return count;
}

bool adds_slices(const Contraction& contraction, const Slicing& slicing) {
  return added_slices(contraction, slicing) > 1;
}

double sliced_flops(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                    const Slicing& slicing) {
  const std::vector<Indices> tensors = contraction.tensors(steps);
  double flops = 0;
  for (const ContractionStep& step : steps) {
    const Indices all = step_indices(step, tensors);
    double times = 1;
    for (const SlicedIndex& each : slicing) {  // what does not depend on it is made again for each
      if (!has_index(all, each.index)) times *= static_cast<double>(each.pieces);
    }
    flops += times * step_flops(step, all, elements(contraction, all));
  }
  const int64_t sums = added_slices(contraction, slicing) - 1;
  return flops + static_cast<double>(sums) * elements(contraction, contraction.output);
}

std::optional<Slicing> sliced_further(const Contraction& contraction,
                                      const std::vector<ContractionStep>& steps,
                                      const Slicing& slicing) {
  const std::vector<Indices> tensors = contraction.tensors(steps);
  std::optional<Slicing> best;
  std::tuple<double, double> least;
  for (size_t i = 0; i < contraction.sizes.size(); ++i) {
    check_interrupt();
    const int index = static_cast<int>(i);
    const int64_t now = pieces_of(slicing, index);
    const int64_t pieces = std::min(2 * now, contraction.sizes[i]);
    if (pieces <= now) continue;
    Slicing cut = with_pieces(contraction, slicing, index, pieces);
    if (slice_count(cut) > kMostSlices) continue;
    const Held held = held_of(contraction, steps, tensors, cut);
    const double flops = sliced_flops(contraction, steps, cut);
    const std::tuple cost(held.most * flops, held.all * flops);
    if (best && cost >= least) continue;
    best = std::move(cut);
    least = cost;
  }
  return best;
}

std::vector<Interval> slice_intervals(const Contraction& contraction, const Slicing& slicing,
                                      int64_t number) {
  std::vector<Interval> intervals;
  for (const int64_t size : contraction.sizes) intervals.push_back({0, size});
  for (auto each = slicing.rbegin(); each != slicing.rend(); ++each) {
    Interval& interval = intervals[static_cast<size_t>(each->index)];
    interval = split_evenly(interval, each->pieces, number % each->pieces);
    number /= each->pieces;
  }
  return intervals;
}

Contraction slice_within(const Contraction& contraction, const std::vector<Interval>& intervals) {
  Contraction slice = contraction;
  for (size_t i = 0; i < intervals.size(); ++i) slice.sizes[i] = intervals[i].length();
  return slice;
}

}  // namespace cuop
