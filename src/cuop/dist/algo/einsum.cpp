#include "cuop/dist/algo/einsum.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/combine.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/einsum_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/einsum/pair_product_internal.h"
#include "cuop/ops/einsum/run_internal.h"
#include "cuop/ops/einsum/tensordot.h"

namespace cuop::dist {
namespace {

constexpr size_t kMostOrders = 4;

/// All of a call that follows from the operands' shapes.
struct Described {
  EinsumProblem problem;
  std::vector<std::vector<ContractionStep>> orders;
  std::vector<std::vector<PairForm>> forms;  ///< of their steps
};

/// The equation for operands of these shapes.
using EquationOf = std::function<std::string(const std::vector<Shape>&)>;

class Einsum {
 public:
  Einsum(std::string text, EquationOf equation, PathOptions path)
      : text_(std::move(text)), equation_(std::move(equation)), path_(std::move(path)) {}

  Plan plan(const PlanArguments& given) const {
    const auto known = described(given.inputs);
    const EinsumProblem& problem = known->problem;
    EinsumTask task;
    task.inputs = given.inputs;
    task.labels = problem.equation.operands;
    task.contraction = problem.contraction;
    task.orders = known->orders;
    task.forms = known->forms;
    task.output = problem.equation.output;
    task.shape = problem.shape;
    task.dtype = result_dtype(given.inputs);
    for (size_t i = 0; i < problem.equation.names.size(); ++i) {
      task.names.push_back(term_of(problem.equation, {static_cast<int>(i)}));
    }
    task.wanted = given.output;
    return plan_einsum(task, given.machine, given.strategy);
  }

  DistTensor execute(const Plan& plan, const std::vector<DistTensor>& inputs) const {
    const auto known = described(plan.inputs);
    return follow(plan, known->problem,
                  known->orders.at(static_cast<size_t>(plan.setting("order"))), inputs);
  }

 private:
  static DType result_dtype(const std::vector<Placement>& inputs) {
    DType dtype = inputs[0].dtype;
    for (const Placement& input : inputs) dtype = promote(dtype, input.dtype);
    return dtype;
  }

  /// Searched for once: the plan and its execution ask for the same.
  std::shared_ptr<const Described> described(const std::vector<Placement>& inputs) const {
    using Known = LruCache<std::string, std::shared_ptr<const Described>>;
    auto& cache = of_thread([] { return new Known(64); });
    std::string key = text_;
    std::vector<Shape> shapes;
    for (const Placement& input : inputs) {
      shapes.push_back(input.shape);
      key += cat(input.shape);
    }
    if (const auto* found = cache.find(key)) return *found;
    Described made{einsum_problem(equation_(shapes), shapes), {}, {}};
    made.orders = find_orders(made.problem.contraction, path_, kMostOrders);
    for (const auto& steps : made.orders) {
      made.forms.push_back(pairwise::row_major_forms(made.problem.contraction, steps));
    }
    auto kept = std::make_shared<const Described>(std::move(made));
    cache.put(key, kept);
    return kept;
  }

  static DistTensor follow(const Plan& plan, const EinsumProblem& problem,
                           const std::vector<ContractionStep>& steps,
                           const std::vector<DistTensor>& inputs);

  std::string text_;
  EquationOf equation_;
  PathOptions path_;
};

/// One step after the other, on this rank's blocks of a slice.
class EinsumFollower {
 public:
  /// `window` is what the slice has of each index.
  EinsumFollower(const Plan& plan, const EinsumProblem& problem,
                 const std::vector<ContractionStep>& steps, const std::vector<DistTensor>& inputs,
                 std::vector<Interval> window)
      : plan_(plan),
        dtype_(plan.outputs[0].dtype),
        problem_(problem),
        window_(std::move(window)),
        from_zero_(window_),
        tensors_(problem.contraction.tensors(steps)),
        inputs_(inputs),
        comm_(inputs[0].comm_ptr()),
        device_(inputs[0].device()),
        made_(steps.size()) {
    for (Interval& interval : from_zero_) interval = {0, interval.length()};
  }

  void step(const ContractionStep& step, size_t number, const PlanStep& planned) {
    const IndexLayout work = work_layout(planned);
    const Sharding& made_as = planned.made->sharding;
    const Shape shape = shape_of(step.result);
    // Pieces of size 1 are split like longer ones: one rank has them.
    const std::vector<Box> blocks =
        work.boxes(step.result, problem_.contraction.shape(step.result), from_zero_);
    const Box& mine = blocks[static_cast<size_t>(comm_->rank())];
    // All ranks take part in what moves, also those that have nothing of the result.
    const bool is_summed = !(work.of(step.result) == work);
    // Sums in 16 bits are rounded once, when those of all ranks have been added.
    const DType dtype = is_summed ? compute_dtype(dtype_) : dtype_;
    const DType taken = step.is_pair() ? dtype_ : dtype;  // pairs widen what they make
    const pairwise::NamedTensor left = fetched(step.left, work, taken);
    pairwise::NamedTensor right;
    if (step.is_pair()) right = fetched(step.right, work, taken);
    Tensor local;
    if (!mine.is_void && is_here(work)) {
      if (step.is_pair()) {
        local = empty(mine.shape(), dtype, device_);
        pairwise::multiply_pair(left, right, step.result, local);
      } else {
        local = pairwise::sum_to(left, step.result);
      }
    } else if (!mine.is_void) {
      local = empty(mine.shape(), dtype, device_);
    }
    if (is_summed) {
      const Part partial{local, mine, device_};
      local = combine(*comm_, partial, blocks, made_as.owner_boxes(shape), dtype,
                      fold_by(ReduceKind::kSum));
      if (local.is_defined()) local = cuop::cast(local, dtype_);
    }
    made_[number] = DistTensor(comm_, made_as, shape, dtype_, std::move(local), device_);
    release(step.left);
    if (step.is_pair()) release(step.right);
  }

  /// What the last step made.
  const DistTensor& last() const { return made_.back(); }

 private:
  Shape shape_of(const Indices& indices) const {
    Shape shape;
    for (const int index : indices) {
      shape.push_back(window_[static_cast<size_t>(index)].length());
    }
    return shape;
  }
  bool is_here(const IndexLayout& work) const {
    return work.root < 0 || work.root == comm_->rank();
  }
  bool is_input(int tensor) const { return static_cast<size_t>(tensor) < inputs_.size(); }
  size_t made_number(int tensor) const { return static_cast<size_t>(tensor) - inputs_.size(); }
  void release(int tensor) {
    if (!is_input(tensor)) made_[made_number(tensor)] = DistTensor();
  }

  /// This rank's block of a tensor where a step needs it; undefined where it needs none.
  pairwise::NamedTensor fetched(int tensor, const IndexLayout& work, DType dtype) const {
    const Indices& indices = tensors_[static_cast<size_t>(tensor)];
    if (!is_input(tensor)) {
      const DistTensor& x = made_[made_number(tensor)];
      const Tensor part = moved_to(x, work.of(indices).sharding(indices)).local();
      return {part.is_defined() ? cuop::cast(part, dtype) : part, indices};
    }
    const DistTensor& x = inputs_[static_cast<size_t>(tensor)];
    const Indices& labels = problem_.equation.operands[static_cast<size_t>(tensor)];
    const Tensor part = fetch(*comm_, part_of(x), x.sharding().owner_boxes(x.shape()),
                              work.boxes(labels, x.shape(), window_), x.dtype(),
                              Travel{.is_relayed = is_relayed(plan_, static_cast<size_t>(tensor))});
    if (!is_here(work) || !part.is_defined()) return {Tensor(), indices};
    return {cuop::cast(pairwise::diagonal_view(part, labels, indices), dtype), indices};
  }

  const Plan& plan_;
  DType dtype_;
  const EinsumProblem& problem_;
  std::vector<Interval> window_;
  std::vector<Interval> from_zero_;  ///< the same in what the slice makes
  std::vector<Indices> tensors_;
  const std::vector<DistTensor>& inputs_;
  CommunicatorPtr comm_;
  Device device_;
  std::vector<DistTensor> made_;
};

/// The result, of what the slices make on each rank.
class Assembly {
 public:
  Assembly(const Plan& plan, const Contraction& contraction, const Slicing& slicing)
      : dtype_(plan.outputs[0].dtype),
        contraction_(contraction),
        added_(added_slices(contraction, slicing)) {}

  void add(const DistTensor& made, int64_t number, const std::vector<Interval>& window) {
    if (number == 0) begin(made);
    const Tensor& part = made.local();
    // A rank that has nothing of the result has nothing of a piece of it.
    if (!whole_.is_defined() || whole_.size() == 0 || !part.is_defined()) return;
    Layout layout = whole_.layout();
    for (int dim = 0; dim < layout.ndim(); ++dim) {
      // An index that is cut is split over no ranks: its piece lies in this rank's part.
      const int index = contraction_.output[static_cast<size_t>(dim)];
      const Interval& interval = window[static_cast<size_t>(index)];
      if (interval.length() == contraction_.sizes[static_cast<size_t>(index)]) continue;
      layout.offset += interval.low * layout.strides[dim];
      layout.shape[dim] = interval.length();
    }
    sums_.add(part, whole_.with_layout(layout), number % added_, added_);
  }

  DistTensor result(const DistTensor& made) const {
    return {made.comm_ptr(), made.sharding(), contraction_.shape(contraction_.output),
            dtype_,          whole_,          made.device()};
  }

 private:
  void begin(const DistTensor& made) {
    const Shape shape = contraction_.shape(contraction_.output);
    const Box mine = made.sharding().owner_box(shape, made.comm().rank());
    if (!mine.is_void) whole_ = empty(mine.shape(), dtype_, made.device());
  }

  DType dtype_;
  const Contraction& contraction_;
  int64_t added_;  ///< so many slices in a row are of one piece of the result
  Tensor whole_;
  pairwise::SliceSums sums_;
};

/// What the last step made, with the dimensions of size 1.
DistTensor with_all_dimensions(const DistTensor& last, const Placement& output) {
  const Box box = output.sharding.owner_box(output.shape, last.comm().rank());
  Tensor local = last.local();
  if (local.is_defined() && !box.is_void) {
    Layout layout{box.shape(), box.shape(), local.layout().offset};
    int next = 0;
    for (int dim = 0; dim < output.shape.ndim(); ++dim) {
      const bool is_kept = output.shape[dim] != 1;
      layout.strides[dim] = is_kept ? local.strides()[next++] : 1;
    }
    local = local.with_layout(layout);
  } else {
    local = Tensor();
  }
  return {last.comm_ptr(), output.sharding, output.shape, output.dtype, local, last.device()};
}

DistTensor Einsum::follow(const Plan& plan, const EinsumProblem& problem,
                          const std::vector<ContractionStep>& steps,
                          const std::vector<DistTensor>& inputs) {
  const Contraction& contraction = problem.contraction;
  const Slicing slicing = plan_slicing(plan, contraction);
  const auto slices = static_cast<int64_t>(slice_count(slicing));
  Assembly assembly(plan, contraction, slicing);
  for (int64_t slice = 0; slice < slices; ++slice) {
    const std::vector<Interval> window = slice_intervals(contraction, slicing, slice);
    EinsumFollower follower(plan, problem, steps, inputs, window);
    size_t number = 0;
    for (const PlanStep& planned : plan.steps) {
      if (!planned.made) continue;  // moves and sums over ranks follow from where steps work
      follower.step(steps.at(number), number, planned);
      ++number;
    }
    const DistTensor& last = follower.last();
    if (slicing.empty()) return with_all_dimensions(last, plan.outputs[0]);
    assembly.add(last, slice, window);
    if (slice + 1 == slices) {
      return with_all_dimensions(assembly.result(last), plan.outputs[0]);
    }
  }
  throw ExecutionError("einsum: a plan without slices");
}

Operation operation(const std::string& text, size_t count, EquationOf equation,
                    const PathOptions& path) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(cat("operand ", i));
  const auto einsum = std::make_shared<const Einsum>(text, std::move(equation), path);
  return {text, std::move(names), std::bind_front(&Einsum::plan, einsum),
          std::bind_front(&Einsum::execute, einsum)};
}

}  // namespace

Operation einsum_operation(std::string_view equation, size_t count, const PathOptions& path) {
  return operation(
      cat("einsum ", equation, text_of(path)), count,
      [equation = std::string(equation)](const auto&) { return equation; }, path);
}

Operation tensordot_operation(const TensordotAxes& axes) {
  return operation(
      tensordot_text(axes), 2,
      [axes](const std::vector<Shape>& shapes) { return tensordot_equation(shapes, axes); }, {});
}

std::string tensordot_equation(const std::vector<Shape>& shapes, const TensordotAxes& axes) {
  if (shapes.size() != 2) {
    throw ExecutionError("tensordot: two tensors are needed, operand 1 was not given");
  }
  const PairedAxes pairs =
      axes.are_listed ? PairedAxes{axes.of_a, axes.of_b}
                      : last_and_first_axes(axes.count, shapes[0].ndim(), shapes[1].ndim());
  const TensordotNames names = tensordot_names(shapes[0], shapes[1], pairs.of_a, pairs.of_b);
  std::string text;
  for (const int name : names.a) text += index_letter(name);
  text += ',';
  for (const int name : names.b) text += index_letter(name);
  text += "->";
  for (const int name : names.result) text += index_letter(name);
  return text;
}

std::string tensordot_text(const TensordotAxes& axes) {
  return axes.are_listed ? cat("tensordot axes (", join(axes.of_a), ") and (", join(axes.of_b), ')')
                         : cat("tensordot axes ", axes.count);
}

DistTensor einsum(std::string_view equation, const std::vector<DistTensor>& operands,
                  const PathOptions& path, const CallOptions& options) {
  return run_sharded(einsum_operation(equation, operands.size(), path), operands, options);
}

Tensor einsum_from_root(const CommunicatorPtr& comm, std::string_view equation,
                        const std::vector<Tensor>& operands, const PathOptions& path,
                        const CallOptions& options) {
  // Ranks that hold nothing need not know how many there are.
  const auto terms = static_cast<size_t>(operand_count(equation));
  std::vector<Tensor> all = operands;
  all.resize(std::max(all.size(), terms));
  return run_rooted(comm, einsum_operation(equation, all.size(), path), all, options);
}

DistTensor tensordot(const DistTensor& a, const DistTensor& b, const TensordotAxes& axes,
                     const CallOptions& options) {
  return run_sharded(tensordot_operation(axes), {a, b}, options);
}

Tensor tensordot_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                           const TensordotAxes& axes, const CallOptions& options) {
  return run_rooted(comm, tensordot_operation(axes), {a, b}, options);
}

}  // namespace cuop::dist
