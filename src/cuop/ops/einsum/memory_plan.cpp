#include <algorithm>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/ops/einsum/memory_plan_internal.h"
#include "cuop/ops/einsum/run_internal.h"

namespace cuop::pairwise {

namespace {

/// Up to so many indices, cut into pieces of two sizes each, all combinations are looked at.
constexpr size_t kMostUneven = 5;

class Measure {
 public:
  Measure(const Contraction& contraction, const std::vector<ContractionStep>& steps,
          const CallLayouts& layouts)
      : contraction_(contraction), steps_(steps), layouts_(layouts) {}

  /// The bytes of a call in such slices.
  int64_t operator()(const Slicing& slicing) const {
    const double whole = elements(contraction_.output, contraction_.sizes);
    const bool has_result = layouts_.operands.size() > 1 || !slicing.empty();
    const int64_t result = has_result && !layouts_.out ? bytes(whole, layouts_.dtype) : 0;
    std::vector<SlicedIndex> uneven;
    for (const SlicedIndex& each : slicing) {
      if (size_of(each.index) % each.pieces != 0) uneven.push_back(each);
    }
    const bool is_any_smaller = uneven.size() > kMostUneven;
    const size_t sizes = is_any_smaller ? 1 : size_t{1} << uneven.size();
    int64_t most = 0;
    for (size_t chosen = 0; chosen < sizes; ++chosen) {
      check_interrupt();
      std::vector<Interval> intervals = slice_intervals(contraction_, slicing, 0);
      for (size_t i = 0; i < uneven.size(); ++i) {
        Interval& interval = intervals[static_cast<size_t>(uneven[i].index)];
        if (((chosen >> i) & 1) != 0) --interval.high;  // the pieces behind are one shorter
      }
      most = std::max(most, slice_bytes(slicing, intervals, is_any_smaller));
    }
    return add(result, most);
  }

 private:
  int64_t size_of(int index) const { return contraction_.sizes[static_cast<size_t>(index)]; }
  static double elements(const Indices& indices, const std::vector<int64_t>& sizes) {
    double count = 1;
    for (const int index : indices) {
      count *= static_cast<double>(sizes[static_cast<size_t>(index)]);
    }
    return count;
  }
  static int64_t bytes(double elements, DType dtype) {
    return static_cast<int64_t>(std::min(elements * static_cast<double>(itemsize(dtype)), 0x1p61));
  }
  static int64_t add(int64_t a, int64_t b) {
    return bytes(static_cast<double>(a) + static_cast<double>(b), DType::kInt8);
  }

  int64_t slice_bytes(const Slicing& slicing, const std::vector<Interval>& intervals,
                      bool is_any_smaller) const {
    const Contraction slice = slice_within(contraction_, intervals);
    RunSizes sizes;
    sizes.dtype = layouts_.dtype;
    sizes.device = layouts_.device;
    sizes.is_any_smaller = is_any_smaller;
    for (size_t i = 0; i < layouts_.operands.size(); ++i) {
      Layout layout = sliced_layout(layouts_.operands[i], contraction_.inputs[i], intervals);
      const bool is_converted = layouts_.dtypes[i] != layouts_.dtype;
      if (is_converted) layout = contiguous_layout(layout.shape);
      const double count = elements(contraction_.inputs[i], slice.sizes);
      sizes.held.push_back(is_converted ? bytes(count, layouts_.dtype) : 0);
      sizes.operands.push_back(std::move(layout));
    }
    int64_t total = 0;
    if (adds_slices(contraction_, slicing)) {
      const DType wide = compute_dtype(layouts_.dtype);
      if (wide != layouts_.dtype) total = bytes(elements(contraction_.output, slice.sizes), wide);
    } else if (layouts_.out) {
      sizes.out = sliced_layout(*layouts_.out, contraction_.output, intervals);
    } else if (layouts_.operands.size() > 1 || !slicing.empty()) {
      sizes.out = sliced_layout(contiguous_layout(contraction_.shape(contraction_.output)),
                                contraction_.output, intervals);
    }
    return add(total, run_bytes(slice, steps_, sizes));
  }

  const Contraction& contraction_;
  const std::vector<ContractionStep>& steps_;
  const CallLayouts& layouts_;
};

/// The index of which `next` has more pieces.
SlicedIndex newly_cut(const Slicing& slicing, const Slicing& next) {
  for (const SlicedIndex& each : next) {
    if (std::find(slicing.begin(), slicing.end(), each) == slicing.end()) return each;
  }
  return {};
}

/// `next`, which fits, with as few pieces of what it cuts beyond `slicing` as still fit.
Slicing loosened(const Measure& measure, const Slicing& slicing, const Slicing& next,
                 int64_t limit) {
  const SlicedIndex cut = newly_cut(slicing, next);
  const auto with = [&](int64_t pieces) {
    Slicing between = next;
    for (SlicedIndex& each : between) {
      if (each.index == cut.index) each.pieces = pieces;
    }
    return between;
  };
  int64_t fits = cut.pieces, fails = cut.pieces / 2;
  while (fits - fails > 1) {
    const int64_t middle = fails + (fits - fails) / 2;
    (measure(with(middle)) <= limit ? fits : fails) = middle;
  }
  return with(fits);
}

}  // namespace

Layout sliced_layout(const Layout& layout, const Indices& indices,
                     const std::vector<Interval>& intervals) {
  Layout part = layout;
  for (int dim = 0; dim < part.ndim(); ++dim) {
    const Interval& interval = intervals[static_cast<size_t>(indices[static_cast<size_t>(dim)])];
    part.shape[dim] = interval.length();
    part.offset += interval.low * part.strides[dim];
  }
  return part;
}

MemoryPlan fit_memory(const Contraction& contraction,
                      const std::vector<std::vector<ContractionStep>>& orders,
                      const CallLayouts& layouts, std::optional<int64_t> limit) {
  std::optional<MemoryPlan> best;
  std::optional<int64_t> least;
  for (const std::vector<ContractionStep>& steps : orders) {
    const Measure measure(contraction, steps, layouts);
    Slicing slicing;
    int64_t peak = measure(slicing);
    if (!least || peak < *least) least = peak;
    while (limit && peak > *limit) {
      const std::optional<Slicing> next = sliced_further(contraction, steps, slicing);
      if (!next) break;
      peak = measure(*next);
      least = std::min(*least, peak);
      slicing = peak <= *limit ? loosened(measure, slicing, *next, *limit) : *next;
    }
    if (limit && peak > *limit) continue;
    const double flops = sliced_flops(contraction, steps, slicing);
    if (best && flops >= best->flops) continue;
    best = MemoryPlan{steps, slicing, measure(slicing), flops};
  }
  if (!best) {
    throw MemoryError(cat("einsum: the memory limit is ", *limit, " bytes; at least ", *least,
                          " are needed (", format_bytes(*least), "), of which the result has ",
                          layouts.out ? 0
                                      : element_count(contraction.shape(contraction.output)) *
                                            itemsize(layouts.dtype)));
  }
  return *std::move(best);
}

}  // namespace cuop::pairwise
