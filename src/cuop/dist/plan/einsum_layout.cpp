#include "cuop/dist/plan/einsum_layout.h"

#include <algorithm>
#include <limits>

#include "cuop/core/byte_size.h"
#include "cuop/core/divide_up.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {

namespace {

constexpr size_t kMostStates = 12;
constexpr size_t kMostLineIndices = 10;
constexpr size_t kMostGridIndices = 4;

/// What a rank has of an interval of an index.
Interval block_within(const IndexLayout& layout, int index, Interval interval, int rank) {
  for (size_t axis = 0; axis < layout.axes.size(); ++axis) {
    if (layout.axes[axis] != index) continue;
    const int number = static_cast<int>(axis);
    interval =
        split_evenly(interval, layout.mesh->shape()[number], layout.mesh->coordinate(rank, number));
  }
  return interval;
}

/// What it has of an index of this size.
Interval block_of(const IndexLayout& layout, int index, int64_t size, int rank) {
  return block_within(layout, index, {0, size}, rank);
}

template <class IntervalOf>
std::vector<Box> boxes_of(const IndexLayout& layout, const Indices& indices, const Shape& shape,
                          const IntervalOf& interval_of) {
  std::vector<Box> all;
  for (int rank = 0; rank < layout.mesh->size(); ++rank) {
    if (layout.root >= 0 && rank != layout.root) {
      all.push_back(empty_box(shape.ndim()));
      continue;
    }
    Box box = whole_box(shape);
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      const int index = indices[static_cast<size_t>(dim)];
      if (shape[dim] == 1) continue;
      Interval interval = interval_of(index, shape[dim]);
      if (layout.root < 0) interval = block_within(layout, index, interval, rank);
      box.set_interval(dim, interval);
    }
    all.push_back(box);
  }
  return all;
}

}  // namespace

Sharding IndexLayout::sharding(const Indices& indices) const {
  if (root >= 0) return Sharding::on_rank(*mesh, root);
  std::vector<Spec::Axes> dims(indices.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (size_t dim = 0; dim < indices.size(); ++dim) {
      if (axes[axis] >= 0 && indices[dim] == axes[axis]) {
        dims[dim].push_back(mesh->names()[axis]);
      }
    }
  }
  return Sharding(*mesh, Spec(std::move(dims)));
}

std::vector<Box> IndexLayout::boxes(const Indices& indices, const Shape& shape) const {
  return boxes_of(*this, indices, shape, [](int, int64_t size) { return Interval{0, size}; });
}

std::vector<Box> IndexLayout::boxes(const Indices& indices, const Shape& shape,
                                    const std::vector<Interval>& window) const {
  return boxes_of(*this, indices, shape,
                  [&](int index, int64_t) { return window[static_cast<size_t>(index)]; });
}

bool IndexLayout::operator==(const IndexLayout& other) const {
  return root == other.root && axes == other.axes && (mesh == other.mesh || *mesh == *other.mesh);
}

IndexLayout IndexLayout::of(const Indices& indices) const {
  IndexLayout part = *this;
  for (int& index : part.axes) {
    if (!has_index(indices, index)) index = -1;
  }
  return part;
}

StepCost step_cost(const EinsumTask& task, size_t order, size_t number,
                   const std::vector<Indices>& tensors, const Machine& machine,
                   const ElementsOf& elements) {
  const ContractionStep& step = task.orders[order][number];
  const Indices all = step_indices(step, tensors);
  const double worked = elements(all);
  StepCost cost{step_flops(step, all, worked)};
  const PairIndices pair = pair_of(step, tensors);
  if (!pair.is_matrix_product() || worked <= 0.0) return cost;
  const PairForm& form = task.forms[order][number];
  cost.efficiency = product_efficiency(
      machine, {elements(pair.left), elements(pair.right), elements(pair.summed)});
  double copied = 0;
  if (form.copies_left) copied += elements(tensors[static_cast<size_t>(step.left)]);
  if (form.copies_right) copied += elements(tensors[static_cast<size_t>(step.right)]);
  if (form.copies_result) copied += elements(step.result);
  cost.copied_bytes = copied * static_cast<double>(itemsize(task.dtype));
  return cost;
}

double copy_seconds(const Machine& machine, double bytes) {
  return 2 * bytes / (machine.memory_bandwidth * machine.transposed_speed);
}

namespace {

/// Slices of the result are put side by side where they are: no rank has less of one of them.
bool may_split(const EinsumTask& task, int index) {
  return !has_index(task.output, index) ||
         std::none_of(task.slicing.begin(), task.slicing.end(),
                      [&](const SlicedIndex& each) { return each.index == index; });
}

/// One way for a tensor to lie, and the quickest way there.
struct State {
  IndexLayout layout;
  double seconds = 0;
  IndexLayout work = {};  ///< of the step that made it
  int left = -1;          ///< states of what it took
  int right = -1;
};

class Search {
 public:
  Search(const EinsumTask& task, size_t order, const Machine& machine, LayoutChoice choice)
      : task_(task),
        order_(order),
        steps_(task.orders.at(order)),
        machine_(machine),
        choice_(choice),
        root_(common_rank(task.inputs)),
        tensors_(task.contraction.tensors(steps_)),
        states_(tensors_.size()),
        window_(slice_intervals(task.contraction, task.slicing, 0)) {
    const int ranks = task.ranks();
    meshes_.push_back(std::make_shared<const Mesh>(Mesh::line(ranks)));
    for (int rows = 2; rows < ranks; ++rows) {
      if (ranks % rows != 0) continue;
      const std::vector<std::string> names{"r", "c"};
      meshes_.push_back(std::make_shared<const Mesh>(Dims{rows, ranks / rows}, names));
    }
    for (const Placement& input : task.inputs) {
      owners_.push_back(input.sharding.owner_boxes(input.shape));
      held_ += largest_block(input.shape, input.dtype, input.sharding);
    }
  }

  std::optional<std::vector<StepLayout>> run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!follow(i)) return std::nullopt;
    }
    std::vector<StepLayout> chosen(steps_.size());
    collect(tensors_.size() - 1, best_end(), chosen);
    return chosen;
  }

 private:
  size_t input_count() const { return task_.inputs.size(); }
  /// In the first slice, which is the largest.
  int64_t size_of(int index) const { return window_[static_cast<size_t>(index)].length(); }
  bool may_split(int index) const { return cuop::dist::may_split(task_, index); }

  double elements(const IndexLayout& layout, const Indices& indices, int rank) const {
    if (layout.root >= 0 && rank != layout.root) return 0;
    double count = 1;
    for (const int index : indices) {
      const int64_t size = size_of(index);
      count *= static_cast<double>(layout.root >= 0 ? size
                                                    : block_of(layout, index, size, rank).length());
    }
    return count;
  }
  /// Of the rank that has most, which is the first.
  double most(const IndexLayout& layout, const Indices& indices) const {
    return elements(layout, indices, std::max(layout.root, 0));
  }
  double common(const IndexLayout& a, const IndexLayout& b, const Indices& indices,
                int rank) const {
    if (a.root >= 0 && rank == a.root) return elements(b, indices, rank);
    if (b.root >= 0 && rank == b.root) return elements(a, indices, rank);
    if (a.root >= 0 || b.root >= 0) return 0;
    double count = 1;
    for (const int index : indices) {
      const Interval x = block_of(a, index, size_of(index), rank);
      const Interval y = block_of(b, index, size_of(index), rank);
      count *=
          static_cast<double>(Interval{std::max(x.low, y.low), std::min(x.high, y.high)}.length());
    }
    return count;
  }

  /// For ranks that receive so many elements each, all of them from one rank or from many.
  double seconds_for(const std::vector<double>& received, bool is_from_one, DType dtype) const {
    double total = 0, busiest = 0;
    for (const double each : received) {
      total += each;
      busiest = std::max(busiest, each);
    }
    if (total == 0) return 0;
    const double ranks = static_cast<double>(received.size());
    busiest = std::max(busiest, is_from_one ? total : total / ranks);
    const double bytes = busiest * static_cast<double>(itemsize(dtype));
    const auto count = static_cast<int64_t>(ranks);
    return transfer_seconds(machine_,
                            spread_evenly(machine_, whole_bytes(bytes), count - 1, count));
  }

  double move_seconds(const Indices& indices, const IndexLayout& from,
                      const IndexLayout& to) const {
    std::vector<double> received;
    for (int rank = 0; rank < task_.ranks(); ++rank) {
      received.push_back(elements(to, indices, rank) - common(from, to, indices, rank));
    }
    return seconds_for(received, from.root >= 0, task_.dtype);
  }

  double input_seconds(size_t input, const IndexLayout& to) const {
    const Placement& given = task_.inputs[input];
    const std::vector<Box> needed = to.boxes(task_.labels[input], given.shape, window_);
    std::vector<double> received;
    for (size_t rank = 0; rank < needed.size(); ++rank) {
      const Box there = intersect(needed[rank], owners_[input][rank]);
      received.push_back(static_cast<double>(needed[rank].size() - there.size()));
    }
    return seconds_for(received, given.sharding.single_rank() >= 0, given.dtype);
  }

  /// The quickest way of a tensor to where a step needs it.
  std::pair<double, int> fetched(int tensor, const IndexLayout& work) const {
    const auto number = static_cast<size_t>(tensor);
    const IndexLayout to = work.of(tensors_[number]);
    if (number < input_count()) return {input_seconds(number, to), -1};
    std::pair<double, int> best{std::numeric_limits<double>::infinity(), -1};
    for (size_t i = 0; i < states_[number].size(); ++i) {
      const State& state = states_[number][i];
      const double seconds = state.seconds + move_seconds(tensors_[number], state.layout, to);
      if (best.second < 0 || seconds < best.first) best = {seconds, static_cast<int>(i)};
    }
    return best;
  }

  /// Layouts that a step may work in.
  std::vector<IndexLayout> choices(const Indices& all) const {
    std::vector<IndexLayout> layouts;
    if (root_ >= 0 && choice_ != LayoutChoice::kSplit) layouts.push_back({meshes_[0], {-1}, root_});
    if (choice_ == LayoutChoice::kRoot) return layouts;
    Indices longest;
    for (const int index : all) {
      if (size_of(index) > 1 && may_split(index)) longest.push_back(index);
    }
    std::stable_sort(longest.begin(), longest.end(),
                     [&](int a, int b) { return size_of(a) > size_of(b); });
    if (task_.ranks() == 1) longest.clear();
    for (size_t i = 0; i < std::min(longest.size(), kMostLineIndices); ++i) {
      layouts.push_back({meshes_[0], {longest[i]}});
    }
    layouts.push_back({meshes_[0], {-1}});
    const size_t grid = std::min(longest.size(), kMostGridIndices);
    for (size_t mesh = 1; mesh < meshes_.size(); ++mesh) {
      for (size_t i = 0; i < grid; ++i) {
        for (size_t j = 0; j < grid; ++j) {
          if (i != j) layouts.push_back({meshes_[mesh], {longest[i], longest[j]}});
        }
      }
    }
    return layouts;
  }

  /// Where a result may be brought when an index that is summed was split: over that axis of the
  /// mesh each of its longest dimensions, or none.
  std::vector<IndexLayout> endings(const IndexLayout& work, const Indices& result) const {
    std::vector<IndexLayout> ends{work.of(result)};
    for (size_t axis = 0; axis < work.axes.size(); ++axis) {
      if (work.axes[axis] < 0 || has_index(result, work.axes[axis])) continue;
      std::vector<IndexLayout> more;
      for (const IndexLayout& end : ends) {
        more.push_back(end);
        for (const int index : result) {
          if (size_of(index) < 2 || !may_split(index)) continue;
          more.push_back(end);
          more.back().axes[axis] = index;
        }
      }
      ends = std::move(more);
    }
    return ends;
  }

  /// The ranks that hold partial results of one block.
  double partners(const IndexLayout& work, const Indices& result) const {
    double count = 1;
    for (size_t axis = 0; axis < work.axes.size(); ++axis) {
      const int index = work.axes[axis];
      if (index >= 0 && !has_index(result, index)) {
        count *= static_cast<double>(work.mesh->shape()[static_cast<int>(axis)]);
      }
    }
    return count;
  }

  double combine_seconds(const Indices& result, const IndexLayout& end,
                         double partner_count) const {
    const double received = most(end, result) * (partner_count - 1);
    if (received == 0) return 0;
    const DType summed = compute_dtype(task_.dtype);
    const int64_t bytes = whole_bytes(received * static_cast<double>(itemsize(summed)));
    const auto messages = static_cast<int64_t>(partner_count) - 1;
    return transfer_seconds(machine_, spread_evenly(machine_, bytes, messages, task_.ranks())) +
           static_cast<double>(2 * bytes) / machine_.memory_bandwidth;
  }

  /// Seconds of the rank that has most of a step's arithmetic.
  double computed_seconds(size_t step, const IndexLayout& work, double touched) const {
    const StepCost cost = step_cost(task_, order_, step, tensors_, machine_,
                                    [&](const Indices& indices) { return most(work, indices); });
    return compute_seconds(machine_, cost.flops / cost.efficiency, whole_bytes(touched),
                           task_.dtype) +
           copy_seconds(machine_, cost.copied_bytes);
  }

  /// Fills the states of what step i makes.
  bool follow(size_t i) {
    const ContractionStep& step = steps_[i];
    const Indices all = step_indices(step, tensors_);
    std::vector<State>& made = states_[input_count() + i];
    for (const IndexLayout& work : choices(all)) {
      double touched =
          most(work, tensors_[static_cast<size_t>(step.left)]) + most(work, step.result);
      if (step.is_pair()) touched += most(work, tensors_[static_cast<size_t>(step.right)]);
      touched *= static_cast<double>(itemsize(task_.dtype));
      if (touched + static_cast<double>(held_) > static_cast<double>(machine_.memory)) continue;
      const auto [left_seconds, left] = fetched(step.left, work);
      const auto [right_seconds, right] =
          step.is_pair() ? fetched(step.right, work) : std::pair(0.0, -1);
      const double computed = computed_seconds(i, work, touched);
      const double partner_count = partners(work, step.result);
      for (const IndexLayout& end : endings(work, step.result)) {
        const double seconds = left_seconds + right_seconds + computed +
                               combine_seconds(step.result, end, partner_count);
        keep(made, {end, seconds, work, left, right});
      }
    }
    std::stable_sort(made.begin(), made.end(),
                     [](const State& a, const State& b) { return a.seconds < b.seconds; });
    if (made.size() > kMostStates) made.resize(kMostStates);
    return !made.empty();
  }

  /// One state for each layout.
  static void keep(std::vector<State>& states, State state) {
    const auto same = std::find_if(states.begin(), states.end(),
                                   [&](const State& each) { return each.layout == state.layout; });
    if (same == states.end()) {
      states.push_back(std::move(state));
    } else if (state.seconds < same->seconds) {
      *same = std::move(state);
    }
  }

  int best_end() const {
    const std::vector<State>& ends = states_.back();
    int best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < ends.size(); ++i) {
      double seconds = ends[i].seconds;
      if (task_.wanted) seconds += output_seconds(ends[i].layout);
      if (seconds < least) {
        least = seconds;
        best = static_cast<int>(i);
      }
    }
    return best;
  }

  double output_seconds(const IndexLayout& layout) const {
    const std::vector<Box> made = layout.boxes(task_.output, task_.shape);
    const std::vector<Box> wanted = task_.wanted->owner_boxes(task_.shape);
    std::vector<double> received;
    for (size_t rank = 0; rank < made.size(); ++rank) {
      const int64_t there = intersect(made[rank], wanted[rank]).size();
      received.push_back(static_cast<double>(wanted[rank].size() - there));
    }
    return seconds_for(received, layout.root >= 0, task_.dtype);
  }

  void collect(size_t tensor, int state, std::vector<StepLayout>& chosen) const {
    if (tensor < input_count()) return;
    const size_t step = tensor - input_count();
    const State& from = states_[tensor][static_cast<size_t>(state)];
    chosen[step] = {from.work, from.layout};
    collect(static_cast<size_t>(steps_[step].left), from.left, chosen);
    if (steps_[step].is_pair()) {
      collect(static_cast<size_t>(steps_[step].right), from.right, chosen);
    }
  }

  const EinsumTask& task_;
  size_t order_;
  const std::vector<ContractionStep>& steps_;
  const Machine& machine_;
  LayoutChoice choice_;
  int root_;
  std::vector<Indices> tensors_;
  std::vector<std::vector<State>> states_;  ///< of each tensor that a step makes
  std::vector<Interval> window_;            ///< what of each index the first slice has
  std::vector<std::shared_ptr<const Mesh>> meshes_;
  std::vector<std::vector<Box>> owners_;
  int64_t held_ = 0;  ///< bytes of the operands where they lie
};

}  // namespace

std::optional<std::vector<StepLayout>> choose_layouts(const EinsumTask& task, size_t order,
                                                      const Machine& machine, LayoutChoice choice) {
  return Search(task, order, machine, choice).run();
}

std::vector<StepLayout> naive_layouts(const EinsumTask& task, size_t order) {
  const auto line = std::make_shared<const Mesh>(Mesh::line(task.ranks()));
  const std::vector<Interval> window = slice_intervals(task.contraction, task.slicing, 0);
  std::vector<StepLayout> layouts;
  for (const ContractionStep& step : task.orders.at(order)) {
    const auto first = std::find_if(step.result.begin(), step.result.end(), [&](int index) {
      return window[static_cast<size_t>(index)].length() > 1 && may_split(task, index);
    });
    const IndexLayout work{line, {first == step.result.end() ? -1 : *first}};
    layouts.push_back({work, work});
  }
  return layouts;
}

}  // namespace cuop::dist
