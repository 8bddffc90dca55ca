#include "cuop/dist/plan/einsum_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {

namespace {

/// Settings that say into how many pieces an index is cut begin so, its number follows.
constexpr std::string_view kPieces = "pieces of ";

std::string term(const EinsumTask& task, const Indices& indices) {
  std::string text;
  for (const int index : indices) text += task.names[static_cast<size_t>(index)];
  return text;
}

/// As "i over 2, k over 3".
std::string split_text(const EinsumTask& task, const IndexLayout& layout) {
  if (layout.root >= 0) return cat("on rank ", layout.root);
  std::vector<std::string> parts;
  for (size_t axis = 0; axis < layout.axes.size(); ++axis) {
    const int64_t count = layout.mesh->shape()[static_cast<int>(axis)];
    if (layout.axes[axis] < 0 || count < 2) continue;
    parts.push_back(cat(task.names[static_cast<size_t>(layout.axes[axis])], " over ", count));
  }
  return parts.empty() ? "on every rank" : join(parts);
}

int64_t largest_box(const std::vector<Box>& boxes) {
  int64_t most = 0;
  for (const Box& box : boxes) most = std::max(most, box.size());
  return most;
}

/// Writes the steps of one order in chosen layouts.
class Writer {
 public:
  Writer(const EinsumTask& task, size_t order, const Machine& machine,
         const std::vector<StepLayout>& layouts)
      : task_(task),
        order_(order),
        steps_(task.orders[order]),
        machine_(machine),
        layouts_(layouts),
        tensors_(task.contraction.tensors(steps_)),
        slice_(first_slice(task.contraction, task.slicing)),
        window_(slice_intervals(task.contraction, task.slicing, 0)) {}

  Plan write(const std::string& strategy) {
    Plan plan{"einsum", strategy, "", task_.ranks(), task_.inputs};
    plan.settings["order"] = static_cast<int64_t>(order_);
    for (const Placement& input : task_.inputs) {
      held_ += largest_block(input.shape, input.dtype, input.sharding);
    }
    const Placement made{"result", task_.shape, task_.dtype,
                         layouts_.back().made.sharding(task_.output)};
    if (!task_.slicing.empty()) held_ += assembled_bytes(made);
    live_.resize(tensors_.size());
    std::vector<std::string> texts;
    for (size_t i = 0; i < steps_.size(); ++i) texts.push_back(add_step(plan, i));
    constexpr size_t kShown = 4;
    const size_t more = texts.size() - std::min(texts.size(), kShown);
    texts.resize(texts.size() - more);
    plan.detail = join(texts, "; ") + (more > 0 ? cat("; and ", more, " more") : "");
    if (!task_.slicing.empty()) repeat(plan);
    add_output(plan, machine_, made, task_.wanted);
    const int64_t wanted =
        task_.wanted ? largest_block(task_.shape, task_.dtype, *task_.wanted) : 0;
    plan.memory_per_rank = std::max(peak_, held_ + live_.back() + wanted);
    return plan;
  }

 private:
  int64_t bytes(int64_t elements) const { return elements * itemsize(task_.dtype); }
  bool is_input(int tensor) const { return static_cast<size_t>(tensor) < task_.inputs.size(); }
  Shape shape(const Indices& indices) const { return slice_.shape(indices); }

  /// The result, which slices are put into, and where partial sums are wider, those.
  int64_t assembled_bytes(const Placement& made) const {
    int64_t all = largest_block(made.shape, made.dtype, made.sharding);
    const DType wide = compute_dtype(task_.dtype);
    if (adds_slices(task_.contraction, task_.slicing) && wide != task_.dtype) {
      all += largest_block(shape(task_.output), wide, made.sharding);
    }
    return all;
  }

  /// The steps of the first slice become those of all.
  void repeat(Plan& plan) const {
    const double count = slice_count(task_.slicing);
    for (PlanStep& step : plan.steps) step.repeat(static_cast<int64_t>(count));
    std::vector<std::string> cuts;
    for (const SlicedIndex& each : task_.slicing) {
      cuts.push_back(cat(term(task_, {each.index}), " in ", each.pieces));
      plan.settings[cat(kPieces, each.index)] = each.pieces;
    }
    const double whole = sliced_flops(task_.contraction, steps_, {});
    const double added = sliced_flops(task_.contraction, steps_, task_.slicing) - whole;
    plan.detail = cat(count, " slices (", join(cuts), "; ", added, " flops of ", whole + added,
                      " are added by them): ", plan.detail);
  }
  std::string name(int tensor) const {
    const auto number = static_cast<size_t>(tensor);
    return is_input(tensor) ? cat(task_.inputs[number].name, ' ', term(task_, task_.labels[number]))
                            : term(task_, tensors_[number]);
  }

  /// The move of a tensor to where a step needs it; the bytes of its largest block there.
  int64_t fetch(Plan& plan, int tensor, const IndexLayout& work) {
    const auto number = static_cast<size_t>(tensor);
    if (is_input(tensor)) {
      const Placement& input = task_.inputs[number];
      const std::vector<Box> owners = input.sharding.owner_boxes(input.shape);
      const std::vector<Box> boxes = work.boxes(task_.labels[number], input.shape, window_);
      const int64_t needed = bytes(largest_box(boxes));
      if (owners == boxes) return 0;
      const std::string text =
          cat(name(tensor), ' ', input.shape, ": ", input.sharding, " -> needed");
      add_fetch(plan, machine_, text, owners, boxes, input.dtype, number);
      return needed;
    }
    const Indices& indices = tensors_[number];
    const Sharding from = layouts_[number - task_.inputs.size()].made.sharding(indices);
    const Sharding to = work.of(indices).sharding(indices);
    add_redistribution(plan, machine_, name(tensor), shape(indices), task_.dtype, from, to);
    if (same_owners(from, to, shape(indices))) return 0;
    return largest_block(shape(indices), task_.dtype, to);
  }

  std::string add_step(Plan& plan, size_t i) {
    const ContractionStep& step = steps_[i];
    const auto& [work, made] = layouts_[i];
    int64_t here = fetch(plan, step.left, work);
    if (step.is_pair()) here += fetch(plan, step.right, work);
    const IndexLayout partial_layout = work.of(step.result);
    const bool is_summed = !(partial_layout == work) && work.root < 0;
    // What ranks add up is wider than 16 bits. Matrices are multiplied as they are all the same.
    const DType summed = is_summed ? compute_dtype(task_.dtype) : task_.dtype;
    const int64_t partial =
        largest_box(work.boxes(step.result, shape(step.result))) * itemsize(summed);
    const bool is_widened = summed != task_.dtype && !pair_of(step, tensors_).is_matrix_product();
    int64_t touched = partial;
    for (const int part : {step.left, step.right}) {
      if (part < 0) continue;
      const Indices& indices = tensors_[static_cast<size_t>(part)];
      const int64_t elements_here = largest_box(work.boxes(indices, shape(indices)));
      touched += bytes(elements_here);
      if (is_widened) here += elements_here * itemsize(summed);
    }
    const std::string right =
        step.is_pair() ? cat(',', term(task_, tensors_[static_cast<size_t>(step.right)])) : "";
    const std::string text = cat(term(task_, tensors_[static_cast<size_t>(step.left)]), right, "->",
                                 term(task_, step.result), ' ', split_text(task_, work));
    const StepCost cost = step_cost(task_, order_, i, tensors_, machine_,
                                    [&](const Indices& indices) { return extent(work, indices); });
    const std::string copies =
        cost.copied_bytes > 0 ? cat(", ", format_bytes(whole_bytes(cost.copied_bytes)), " copied")
                              : "";
    add_compute(plan, machine_, text + copies, cost.flops, touched,
                is_widened ? summed : task_.dtype, cost.efficiency);
    plan.steps.back().seconds += copy_seconds(machine_, cost.copied_bytes);
    plan.steps.back().axes = work.axes;
    plan.steps.back().made = {term(task_, step.result), shape(step.result), task_.dtype,
                              made.sharding(step.result)};
    int64_t combined = 0, rounded = 0;
    if (is_summed) {
      combined = largest_block(shape(step.result), task_.dtype, made.sharding(step.result));
      if (summed != task_.dtype) {
        rounded = largest_block(shape(step.result), summed, made.sharding(step.result));
      }
      add_move(plan, machine_, cat("add the partial sums of ", term(task_, step.result)),
               partial_layout.boxes(step.result, shape(step.result)),
               needs_of(made.boxes(step.result, shape(step.result))), summed, Sources::kAll);
    }
    int64_t live = 0;
    for (const int64_t each : live_) live += each;
    peak_ = std::max(peak_, held_ + live + here + partial + combined + rounded);
    live_[static_cast<size_t>(step.left)] = 0;
    if (step.is_pair()) live_[static_cast<size_t>(step.right)] = 0;
    live_[task_.inputs.size() + i] = combined > 0 ? combined : partial;
    return text;
  }

  /// Of these indices what a rank with most of them works on: they may be more than a shape has
  /// dimensions.
  double extent(const IndexLayout& work, const Indices& indices) const {
    const auto rank = static_cast<size_t>(std::max(work.root, 0));
    double elements = 1;
    for (const int index : indices) {
      elements *= static_cast<double>(work.boxes({index}, shape({index}))[rank].size());
    }
    return elements;
  }

  const EinsumTask& task_;
  size_t order_;
  const std::vector<ContractionStep>& steps_;
  const Machine& machine_;
  const std::vector<StepLayout>& layouts_;
  std::vector<Indices> tensors_;
  Contraction slice_;             ///< the first, largest one
  std::vector<Interval> window_;  ///< what of each index it has
  std::vector<int64_t> live_;     ///< bytes of what steps made and others still need
  int64_t held_ = 0;
  int64_t peak_ = 0;
};

const char* name_of(const std::vector<StepLayout>& layouts) {
  const auto is_root = [](const StepLayout& step) { return step.work.root >= 0; };
  if (std::all_of(layouts.begin(), layouts.end(), is_root)) return "root";
  return std::any_of(layouts.begin(), layouts.end(), is_root) ? "mixed" : "split";
}

using Plans = std::vector<Plan>;

void add_plans(Plans& plans, const EinsumTask& task, size_t order, const Machine& machine,
               const Machine& limited) {
  for (const LayoutChoice choice :
       {LayoutChoice::kRoot, LayoutChoice::kSplit, LayoutChoice::kAny}) {
    if (common_rank(task.inputs) < 0 && choice != LayoutChoice::kSplit) continue;
    const auto layouts = choose_layouts(task, order, limited, choice);
    if (!layouts) continue;
    const std::string name = name_of(*layouts);
    if (choice == LayoutChoice::kAny && name != "mixed") continue;  // it is there already
    plans.push_back(Writer(task, order, machine, *layouts).write(name));
  }
}

/// Appends what one writes by hand in each order; the numbers of these plans, which may be there
/// already.
std::vector<size_t> add_naive(Plans& plans, const EinsumTask& task, const Machine& machine) {
  std::vector<size_t> numbers;
  if (task.ranks() == 1) return numbers;
  for (size_t order = 0; order < task.orders.size(); ++order) {
    Plan naive = plan_naively(task, order, machine);
    const auto same = std::find_if(plans.begin(), plans.end(), [&](const Plan& plan) {
      return plan.settings == naive.settings && plan.detail == naive.detail &&
             plan.seconds() == naive.seconds();
    });
    numbers.push_back(static_cast<size_t>(same - plans.begin()));
    if (same == plans.end()) plans.push_back(std::move(naive));
  }
  return numbers;
}

Machine without_limit(Machine machine) {
  machine.memory = std::numeric_limits<int64_t>::max();
  return machine;
}

/// Asks whether a plan is within the limit and of the strategy that is asked for.
struct Fits {
  const Machine& machine;
  std::string_view strategy;

  bool is_asked_for(const Plan& plan) const {
    return strategy.empty() || plan.strategy == strategy;
  }
  bool operator()(const Plans& plans) const {
    return std::any_of(plans.begin(), plans.end(), [&](const Plan& plan) {
      return is_asked_for(plan) && plan.memory_per_rank <= machine.memory;
    });
  }
};

/// The plans of one order in the fewest slices that fit; where none do, those in the most.
Plans sliced_plans(const EinsumTask& task, size_t order, const Fits& fits) {
  const std::vector<ContractionStep>& steps = task.orders[order];
  std::vector<Slicing> all;
  while (auto next =
             sliced_further(task.contraction, steps, all.empty() ? Slicing{} : all.back())) {
    all.push_back(*std::move(next));
  }
  const auto plans_of = [&](size_t number) {
    EinsumTask sliced = task;
    sliced.slicing = all[number];
    Plans plans;
    add_plans(plans, sliced, order, fits.machine, fits.machine);
    add_plans(plans, sliced, order, fits.machine, without_limit(fits.machine));
    return plans;
  };
  if (all.empty()) return {};
  size_t low = 0, high = all.size() - 1;
  Plans best = plans_of(high);
  if (!fits(best)) return best;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Plans plans = plans_of(middle);
    if (fits(plans)) {
      best = std::move(plans);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

/// Seconds of one rank in the faster of the dtypes that steps may be computed in.
Least least_of(const EinsumTask& task, const Machine& machine, double flops, double bytes) {
  const Least least = least_of(machine, flops, bytes, task.dtype);
  const Least wide = least_of(machine, flops, bytes, compute_dtype(task.dtype));
  return wide.seconds < least.seconds ? wide : least;
}

/// Of the step that makes the result.
double last_flops(const Contraction& contraction, const std::vector<ContractionStep>& steps) {
  const Indices all = step_indices(steps.back(), contraction.tensors(steps));
  double elements = 1;
  for (const int index : all) {
    elements *= static_cast<double>(contraction.sizes[static_cast<size_t>(index)]);
  }
  return step_flops(steps.back(), all, elements);
}

/// Of the orders that were found the one of the fewest flops; operands are read and the result is
/// written.
Floor floor_of(const EinsumTask& task, const Machine& machine) {
  double flops = std::numeric_limits<double>::infinity(), last = flops;
  for (const std::vector<ContractionStep>& steps : task.orders) {
    flops = std::min(flops, sliced_flops(task.contraction, steps, {}));
    last = std::min(last, last_flops(task.contraction, steps));
  }
  double bytes = 0;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const int64_t item = std::min(itemsize(task.inputs[i].dtype), itemsize(task.dtype));
    bytes += static_cast<double>(element_count(task.contraction.shape(task.contraction.inputs[i])) *
                                 item);
  }
  const double made =
      static_cast<double>(element_count(task.shape)) * static_cast<double>(itemsize(task.dtype));
  Least least = least_of(task, machine, flops, bytes + made);
  // A rank makes no larger part of the result alone than its share of the last step.
  least.out = {made, wanted_share(task.wanted, task.shape),
               least_of(task, machine, last, 0.0).seconds};
  least.is_rooted = is_rooted(task.inputs, task.wanted);
  return floor_of(least, machine, task.ranks());
}

}  // namespace

Plan plan_naively(const EinsumTask& task, size_t order, const Machine& machine) {
  return Writer(task, order, machine, naive_layouts(task, order)).write("split");
}

Plan plan_einsum(const EinsumTask& task, const Machine& machine, std::string_view strategy) {
  const Fits fits{machine, strategy};
  Plans plans;
  const auto add_whole = [&](const Machine& limited) {
    for (size_t order = 0; order < task.orders.size(); ++order) {
      add_plans(plans, task, order, machine, limited);
    }
  };
  add_whole(machine);
  if (!fits(plans)) add_whole(without_limit(machine));
  const std::vector<size_t> naive = add_naive(plans, task, machine);
  const bool is_known = std::any_of(plans.begin(), plans.end(),
                                    [&](const Plan& plan) { return fits.is_asked_for(plan); });
  if (is_known && !fits(plans)) {
    for (size_t order = 0; order < task.orders.size(); ++order) {
      Plans sliced = sliced_plans(task, order, fits);
      std::move(sliced.begin(), sliced.end(), std::back_inserter(plans));
    }
  }
  return choose(std::move(plans), machine, strategy, floor_of(task, machine), naive);
}

Slicing plan_slicing(const Plan& plan, const Contraction& contraction) {
  Slicing of_output, summed;
  for (size_t i = 0; i < contraction.sizes.size(); ++i) {
    const int index = static_cast<int>(i);
    const auto found = plan.settings.find(cat(kPieces, index));
    if (found == plan.settings.end()) continue;
    (has_index(contraction.output, index) ? of_output : summed).push_back({index, found->second});
  }
  of_output.insert(of_output.end(), summed.begin(), summed.end());
  return of_output;
}

IndexLayout work_layout(const PlanStep& step) {
  const Sharding& made = step.made.value().sharding;
  return {std::make_shared<const Mesh>(made.mesh()), step.axes, made.single_rank()};
}

}  // namespace cuop::dist
