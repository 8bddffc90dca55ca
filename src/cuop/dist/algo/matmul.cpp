#include "cuop/dist/algo/matmul.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/combine.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist {
namespace {

Plan plan_call(const std::vector<Placement>& inputs, const std::optional<Sharding>& output,
               const Machine& machine, const std::string& strategy) {
  if (inputs.size() != 2) throw ExecutionError("matmul: two matrices are needed, B was not given");
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a.ndim() != 2 || b.ndim() != 2 || a[1] != b[0]) {
    throw ShapeError(
        cat("matmul: shapes ", a, " and ", b, " do not fit; needed are (M, K) and (K, N)"));
  }
  return plan_matmul({a[0], b[1], a[1], promote(inputs[0].dtype, inputs[1].dtype),
                      inputs[0].sharding, inputs[1].sharding, output},
                     machine, strategy);
}

/// What each rank needs of an operand for one panel: its box with the inner dimension (`axis`) cut.
std::vector<Box> panel_boxes(const Placement& operand, int axis, int64_t panels, int64_t panel) {
  std::vector<Box> boxes = operand.sharding.owner_boxes(operand.shape);
  for (Box& box : boxes) {
    if (!box.empty()) box.set_interval(axis, split_evenly(box.interval(axis), panels, panel));
  }
  return boxes;
}

DistTensor execute(const Plan& plan, const std::vector<DistTensor>& inputs) {
  const Placement& c = plan.outputs[0];
  const DistTensor a = cast(inputs[0], c.dtype);
  const DistTensor b = cast(inputs[1], c.dtype);
  Communicator& comm = a.comm();
  const Sharding partial_as = partial_sharding(plan);
  const Box mine = partial_as.owner_box(c.shape, comm.rank());
  const int64_t panels = plan.setting("panels");

  Part partial{zeros(mine.shape(), c.dtype, a.device()), mine, a.device()};
  for (int64_t panel = 0; panel < panels; ++panel) {
    const Tensor a_panel = fetch(comm, part_of(a), a.sharding().owner_boxes(a.shape()),
                                 panel_boxes(plan.inputs[0], 1, panels, panel), c.dtype);
    const Tensor b_panel = fetch(comm, part_of(b), b.sharding().owner_boxes(b.shape()),
                                 panel_boxes(plan.inputs[1], 0, panels, panel), c.dtype);
    if (mine.empty() || a_panel.shape(1) == 0) continue;
    cuop::matmul(a_panel, b_panel, {.beta = panel == 0 ? 0 : 1}, &partial.local);
  }
  Tensor local = partial.local;
  if (!(partial_as == c.sharding)) {
    local = combine(comm, partial, partial_as.owner_boxes(c.shape), c.sharding.owner_boxes(c.shape),
                    c.dtype, fold_by(ReduceKind::kSum));
  }
  return DistTensor(a.comm_ptr(), c.sharding, c.shape, c.dtype, local, a.device());
}

Operation operation() { return {"matmul", {"A", "B"}, plan_call, execute}; }

}  // namespace

DistTensor matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(operation(), {a, b}, options);
}

Tensor matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                        const CallOptions& options) {
  return run_rooted(comm, operation(), {a, b}, options);
}

}  // namespace cuop::dist
