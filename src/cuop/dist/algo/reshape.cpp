#include "cuop/dist/algo/reshape.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/reshape_plan.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

/// This rank's part under the new shape, where it stays.
DistTensor kept(const DistTensor& x, const Sharding& sharding, const Shape& shape) {
  const Box box = sharding.owner_box(shape, x.comm().rank());
  Tensor local;
  if (!box.empty()) local = cuop::reshape(x.local(), box.shape());
  return DistTensor(x.comm_ptr(), sharding, shape, x.dtype(), local, x.device());
}

/// This rank's block of the result, from the runs of x of which it is made.
DistTensor fetched(const DistTensor& x, const Sharding& sharding, const Shape& shape) {
  const int rank = x.comm().rank();
  const std::vector<Box> blocks = sharding.owner_boxes(shape);
  const Box& block = blocks[static_cast<size_t>(rank)];
  const std::vector<Need> needs = reshape_needs(blocks, x.shape(), shape);
  const std::vector<Run> runs = runs_of(block, x.shape(), shape);
  size_t before = 0;  // needs of the ranks before this one
  while (before < needs.size() && needs[before].rank < rank) ++before;
  Tensor local;
  if (!block.is_void) local = empty(block.shape(), x.dtype(), x.device());
  const auto landing = [&](const Piece& piece) {
    const Run& run = runs[static_cast<size_t>(piece.need) - before];
    Layout layout = contiguous_layout(run.box.shape());
    layout.offset = run.offset;
    return view_of({local.with_layout(layout), run.box, x.device()}, piece.box);
  };
  exchange(x.comm(), plan_moves(rank, x.sharding().owner_boxes(x.shape()), needs), part_of(x),
           landing);
  return DistTensor(x.comm_ptr(), sharding, shape, x.dtype(), local, x.device());
}

Operation operation_of(const Shape& shape) {
  const auto plan = [shape](const PlanArguments& given) {
    return plan_reshape({given.inputs.at(0), shape, given.output}, given.machine, given.strategy);
  };
  const auto execute = [](const Plan& made, const std::vector<DistTensor>& inputs) {
    const Placement& result = made.outputs[0];
    return made.strategy == "keep" ? kept(inputs[0], result.sharding, result.shape)
                                   : fetched(inputs[0], result.sharding, result.shape);
  };
  return {cat("reshape to ", shape), {"x"}, plan, execute};
}

}  // namespace

DistTensor reshape(const DistTensor& x, const Shape& shape, const CallOptions& options) {
  if (!x.is_defined()) throw ExecutionError("reshape: a distributed tensor is undefined");
  const Shape whole = infer_shape(shape, x.size(), "reshape");
  if (!options.output && options.strategy.empty()) {
    if (const auto sharding = kept_sharding(x.sharding(), x.shape(), whole)) {
      return kept(x, *sharding, whole);
    }
  }
  return run_sharded(operation_of(whole), {x}, options);
}

}  // namespace cuop::dist
