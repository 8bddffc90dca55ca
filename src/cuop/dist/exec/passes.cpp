#include "cuop/dist/exec/passes.h"

#include <algorithm>

#include "cuop/dist/exec/exchange.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

namespace {

/// The others first, then those that a pass works along; none where that is row-major.
AxisOrder order_for(const std::vector<int>& axes, int ndim) {
  AxisOrder order;
  for (const bool is_worked_along : {false, true}) {
    for (int axis = 0; axis < ndim; ++axis) {
      if (has_axis(axes, axis) == is_worked_along) order.push_back(axis);
    }
  }
  return std::is_sorted(order.begin(), order.end()) ? AxisOrder{} : order;
}

/// For what is moved on, with lines that are no powers of two apart in the host's memory: those
/// fall onto the same few places of a cache, and copies across them take twice as long.
Tensor empty_to_move(const AxisOrder& order, const Shape& shape, DType dtype, Device device) {
  constexpr int64_t kTooEven = 1024, kCacheLine = 64;  // bytes
  const int fastest = order.empty() ? shape.ndim() - 1 : static_cast<int>(order.back());
  const int64_t length = shape[fastest];
  if (!device.is_cpu() || length * itemsize(dtype) % kTooEven != 0) {
    return empty_in(order, shape, dtype, device);
  }
  Shape wide = shape;
  wide[fastest] += kCacheLine / itemsize(dtype);
  return slice(empty_in(order, wide, dtype, device), fastest, 0, length);
}

/// Where the plan wants what a pass makes next; null where the result is made of it otherwise.
const Sharding* wanted_next(const Plan& plan, size_t step) {
  const Placement& result = plan.outputs.back();
  const Shape& shape = plan.steps[step].made->shape;
  while (++step < plan.steps.size()) {
    if (plan.steps[step].made) return &plan.steps[step].made->sharding;
  }
  return result.shape == shape ? &result.sharding : nullptr;
}

/// Whether this rank's part is copied to there, not looked at as it lies.
bool is_moved_on(const Plan& plan, size_t step, int rank) {
  const Placement& made = *plan.steps[step].made;
  const Sharding* const next = wanted_next(plan, step);
  if (next == nullptr || *next == made.sharding) return false;
  const Box wanted = next->owner_box(made.shape, rank);
  return wanted.empty() || !made.sharding.owner_box(made.shape, rank).contains(wanted);
}

}  // namespace

DistTensor follow_passes(const Plan& plan, const DistTensor& x, const PassWork& work) {
  DistTensor here = x;
  size_t number = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (!step.made) continue;  // moves follow from where the passes want the tensor
    const Placement& made = *step.made;
    const AxisOrder order = order_for(step.axes, made.shape.ndim());
    here = moved_to(here, made.sharding, order);
    const Box box = made.sharding.owner_box(made.shape, here.comm().rank());
    Tensor local;
    if (!box.is_void) {
      const auto make = is_moved_on(plan, i, here.comm().rank()) ? empty_to_move : empty_in;
      local = make(order, box.shape(), made.dtype, here.device());
    }
    if (!box.empty()) work(here.local(), {number, step.axes, box, local});
    here = DistTensor(here.comm_ptr(), made.sharding, made.shape, made.dtype, local, here.device());
    ++number;
  }
  return here;
}

}  // namespace cuop::dist
