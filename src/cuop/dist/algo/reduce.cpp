#include "cuop/dist/algo/reduce.h"

#include <functional>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/combine.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/reduce_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduction.h"

namespace cuop::dist {
namespace {

struct ShardedReduction {
  ReduceOptions options;

  const char* who() const { return name(options.kind); }
  PartialReduction partial(DType dtype) const {
    return {options.kind, options.mode, dtype, options.correction};
  }
};

Plan plan_reduction(const ShardedReduction& reduction, const PlanArguments& given) {
  const Placement& x = given.inputs.at(0);
  const std::vector<int> axes = reduced_axes(reduction.options, x.shape);
  const PartialReduction partial = reduction.partial(x.dtype);
  check_has_elements(reduction.options, axes, x.shape);
  return plan_reduce({reduction.who(), x, axes, reduction.options.keepdims, partial.state_bytes(),
                      partial.result_dtype(), given.output},
                     given.machine, given.strategy);
}

Tensor reduce_whole(const ShardedReduction& reduction, const Tensor& x) {
  return reduction.partial(x.dtype()).reduce(x, reduction.options.axes, reduction.options.keepdims);
}

DistTensor execute_reduction(const ShardedReduction& reduction, const Plan& plan,
                             const std::vector<DistTensor>& inputs) {
  const DistTensor x = moved_to(inputs[0], plan.inputs[0].sharding);
  const Placement& result = plan.outputs[0];
  const int root = x.sharding().single_rank();
  if (root >= 0 && root == result.sharding.single_rank()) {
    const bool is_mine = root == x.comm().rank();
    const Tensor whole = is_mine ? reduce_whole(reduction, x.local()) : Tensor();
    return DistTensor(x.comm_ptr(), result.sharding, result.shape, result.dtype, whole, x.device());
  }
  const PartialReduction partial = reduction.partial(x.dtype());
  const std::vector<int> axes = reduced_axes(reduction.options, x.shape());
  const int64_t count = elements_along(axes, x.shape());
  const int64_t bytes = partial.state_bytes();
  const auto rank = static_cast<size_t>(x.comm().rank());
  const std::vector<MergeStage> stages =
      merge_stages(state_owners(plan.inputs[0], axes, bytes), result, axes,
                   reduction.options.keepdims, bytes, plan.setting("group"));
  const Box& wanted = stages.back().wanted[rank];
  const auto fold = [&](const Tensor& part) { return partial.fold(part, reduction.options.axes); };

  Tensor states;
  if (count == 0 && !wanted.empty()) {
    // No rank has an element to contribute: every result is the identity.
    Shape shape = x.shape();
    int next = 0;
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      if (!has_axis(axes, dim)) shape[dim] = wanted.interval(next++).length();
    }
    states = fold(empty(shape, x.dtype(), x.device()));
  } else {
    // The pieces are this rank's: it has folded them, and others have read theirs, or they came.
    const Fold merge = [&](const std::vector<Tensor>& pieces) {
      for (size_t i = 1; i < pieces.size(); ++i) partial.merge(pieces[0], pieces[i]);
      return pieces[0];
    };
    if (!stages.front().owners[rank].empty()) states = fold(x.local());
    for (const MergeStage& stage : stages) {
      const Box& mine = stage.owners[rank];
      const Tensor held = mine.empty() ? Tensor() : reshape(states, mine.shape());
      states = combine(x.comm(), {held, mine, x.device()}, stage.owners, stage.wanted,
                       DType::kUInt8, merge);
    }
  }
  const Box box = result.sharding.owner_box(result.shape, x.comm().rank());
  Tensor local;
  if (!box.empty()) local = reshape(partial.finish(std::move(states), count), box.shape());
  return DistTensor(x.comm_ptr(), result.sharding, result.shape, result.dtype, local, x.device());
}

}  // namespace

Operation reduce_operation(const ReduceOptions& options) {
  const ShardedReduction reduction{options};
  Operation operation{
      cat(reduction.who(), " axes ", axes_text(options), ", keepdims ", options.keepdims, ", mode ",
          name(options.mode), ", correction ", options.correction),
      {"x"},
      std::bind_front(plan_reduction, reduction),
      std::bind_front(execute_reduction, reduction)};
  operation.alone = [reduction](const Plan&, const std::vector<Tensor>& inputs) {
    return reduce_whole(reduction, inputs[0]);
  };
  return operation;
}

std::vector<int> reduced_axes(const ReduceOptions& options, const Shape& x) {
  if (options.axes.are_none()) {
    check_takes_axis(name(options.kind), x.ndim());
    return {};
  }
  if (x.ndim() == 0 && options.axes.values().empty()) return {};
  return normalize_axes(options.axes.values(), x.ndim(), name(options.kind));
}

void check_has_elements(const ReduceOptions& options, const std::vector<int>& axes,
                        const Shape& x) {
  const bool needs_one = options.kind == ReduceKind::kMax || options.kind == ReduceKind::kMin;
  if (needs_one && elements_along(axes, x) == 0) {
    throw ShapeError(cat(name(options.kind), ": no elements to reduce in a tensor of shape ", x));
  }
}

int64_t elements_along(const std::vector<int>& axes, const Shape& x) {
  int64_t count = 1;
  for (const int axis : axes) count *= x[axis];
  return count;
}

std::string axes_text(const ReduceOptions& options) {
  return options.axes.are_none() ? "none" : cat('(', join(options.axes.values()), ')');
}

DistTensor reduce(const DistTensor& x, const ReduceOptions& options, const CallOptions& call) {
  return run_sharded(reduce_operation(options), {x}, call);
}

Tensor reduce_from_root(const CommunicatorPtr& comm, const Tensor& x, const ReduceOptions& options,
                        const CallOptions& call) {
  return run_rooted(comm, reduce_operation(options), {x}, call);
}

}  // namespace cuop::dist
