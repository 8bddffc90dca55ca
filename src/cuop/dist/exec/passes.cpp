#include "cuop/dist/exec/passes.h"

#include <algorithm>

#include "cuop/dist/exec/redistribute.h"

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

}  // namespace

DistTensor follow_passes(const Plan& plan, const DistTensor& x, const PassWork& work) {
  DistTensor here = x;
  size_t number = 0;
  for (const PlanStep& step : plan.steps) {
    if (!step.made) continue;  // moves follow from where the passes want the tensor
    const Placement& made = *step.made;
    const AxisOrder order = order_for(step.axes, made.shape.ndim());
    here = moved_to(here, made.sharding, order);
    const Box box = made.sharding.owner_box(made.shape, here.comm().rank());
    Tensor local;
    if (!box.is_void) local = empty_in(order, box.shape(), made.dtype, here.device());
    if (!box.empty()) work(here.local(), {number, step.axes, box, local});
    here = DistTensor(here.comm_ptr(), made.sharding, made.shape, made.dtype, local, here.device());
    ++number;
  }
  return here;
}

}  // namespace cuop::dist
