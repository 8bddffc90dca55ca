#include "cuop/dist/algo/matmul.h"

#include <array>
#include <functional>
#include <optional>

#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/combine.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/made_in_chunks.h"
#include "cuop/dist/exec/narrow.h"
#include "cuop/dist/exec/pipeline.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/matmul/repeated_operand.h"

namespace cuop::dist {
namespace {

Plan plan_product(const Wire& wire, ProductPath path, const PlanArguments& given) {
  const auto& [inputs, output, machine, strategy] = given;
  check_matrices("matmul", inputs);
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const DType dtype = promote(inputs[0].dtype, inputs[1].dtype);
  wire.check_carries(dtype, "matmul");
  return plan_matmul({a[0], b[1], a[1], dtype, inputs[0].sharding, inputs[1].sharding, output, wire,
                      path == ProductPath::kDense},
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

/// C in chunks, each of some rows of A or some columns of B by all of the other operand: while one
/// is multiplied the next one's come, and what was made before goes where C is wanted.
DistTensor execute_product_in_chunks(const Plan& plan, ProductPath path, const DistTensor& a,
                                     const DistTensor& b) {
  const Placement &c = plan.outputs[0], &wanted = plan.outputs.back();
  Communicator& comm = a.comm();
  const auto own = static_cast<size_t>(comm.rank());
  const Device device = a.device();
  const int64_t chunks = chunks_of(plan);
  const size_t chunked = chunked_input(plan);
  const int axis = static_cast<int>(chunked);
  const std::array given{&a, &b};
  std::array<std::vector<Box>, 2> owners, boxes;
  std::array<Part, 2> sources, places;
  std::vector<Tensor> shared;  // by the stages
  for (size_t i = 0; i < given.size(); ++i) {
    const DistTensor& operand = *given[i];
    owners[i] = operand.sharding().owner_boxes(operand.shape());
    boxes[i] = plan.inputs[i].sharding.owner_boxes(operand.shape());
    sources[i] = part_of(operand);
    places[i] = place_for(boxes[i][own], sources[i], c.dtype);
    place_own(comm.rank(), sources[i], owners[i], boxes[i], places[i]);
    if (boxes[i] != owners[i]) sources[i].local = comm.readable_by_others(operand.local());
    shared.insert(shared.end(), {sources[i].local, places[i].local});
  }
  const std::vector<Box> made = c.sharding.owner_boxes(c.shape);
  const MadeInChunks block(comm, made, wanted.sharding.owner_boxes(c.shape), c.dtype, device);
  for (const Tensor& tensor : block.tensors()) shared.push_back(tensor);

  const auto fetch_of = [&](size_t i, const std::vector<Box>& wanted_boxes) {
    fetch_into(comm, sources[i], owners[i], wanted_boxes, places[i], c.dtype,
               Travel{.is_relayed = is_relayed(plan, i), .is_own_placed = true});
  };
  fetch_of(1 - chunked, boxes[1 - chunked]);
  // Of columns of B each chunk is multiplied by all of A, which is taken apart once.
  std::optional<SparseMatrix> apart;
  if (chunked == 1 && !made[own].empty()) {
    apart = taken_apart(places[0].local, made[own].interval(1).length(), path, c.dtype);
  }
  const auto cut = [&](const std::vector<Box>& blocks, int64_t chunk) {
    return chunk_of(blocks, axis, chunks, chunk, kChunkUnit);
  };
  // All chunks are multiplied by the whole of the other operand.
  std::optional<RepeatedOperand> repeated;
  const bool is_dense = chunked == 1 || path == ProductPath::kDense;
  Stages stages;
  stages.bring = [&](int64_t chunk) { fetch_of(chunked, cut(boxes[chunked], chunk)); };
  stages.work = [&](int64_t chunk) {
    const Box mine = cut(made, chunk)[own];
    if (mine.empty()) return;
    std::array operands{places[0].local, places[1].local};
    operands[chunked] = view_of(places[chunked], cut(boxes[chunked], chunk)[own]);
    const Tensor out = block.place_of(mine);
    if (apart) return multiply_apart(*apart, operands[0], operands[1], path, out);
    if (!is_dense) {
      multiply_by_path(operands[0], operands[1], false, path, out);
      return;
    }
    if (!repeated) {
      repeated.emplace(operands[1 - chunked], chunked == 1 ? 0 : 1, out.shape(0), out.shape(1));
    }
    repeated->multiply(operands[chunked], out);
  };
  stages.take = [&](int64_t chunk) { block.take(cut(made, chunk)); };
  const auto is_here = [&](const Sharding& x) { return x.single_rank() == comm.rank(); };
  const bool is_apart = is_here(a.sharding()) && is_here(b.sharding()) && is_here(wanted.sharding);
  run_pipeline(device, chunks, stages, {.is_apart = is_apart}, shared);
  return DistTensor(a.comm_ptr(), wanted.sharding, c.shape, c.dtype, block.result(), device);
}

DistTensor execute_product(const Wire& wire, ProductPath path, const Plan& plan,
                           const std::vector<DistTensor>& inputs) {
  const Placement& c = plan.outputs[0];
  const DistTensor a = cast(inputs[0], c.dtype);
  const DistTensor b = cast(inputs[1], c.dtype);
  if (chunks_of(plan) > 1) return execute_product_in_chunks(plan, path, a, b);
  Communicator& comm = a.comm();
  const Sharding partial_as = partial_sharding(plan);
  const Box mine = partial_as.owner_box(c.shape, comm.rank());
  const int64_t panels = plan.setting("panels");
  const bool is_sum = sums_panels(panels, partial_as, c.sharding);
  const DType summed = is_sum ? compute_dtype(c.dtype) : c.dtype;

  const auto wire_of = [&](const char* key) {
    return wire.is_by_cost ? Wire::of_per_mille(plan.setting(key)) : wire;
  };
  const Wire of_a = wire_of("sparse_a"), of_b = wire_of("sparse_b");
  Part partial{empty(mine.shape(), summed, a.device()), mine, a.device()};
  bool is_begun = false;
  for (int64_t panel = 0; panel < panels; ++panel) {
    const auto fetch_panel = [&](const DistTensor& x, size_t i, int axis, const Wire& of) {
      return fetch(comm, part_of(x), x.sharding().owner_boxes(x.shape()),
                   panel_boxes(plan.inputs[i], axis, panels, panel), c.dtype,
                   Travel{of, axis, is_relayed(plan, i)});
    };
    const Tensor a_panel = fetch_panel(a, 0, 1, of_a), b_panel = fetch_panel(b, 1, 0, of_b);
    if (mine.empty() || a_panel.shape(1) == 0) continue;
    if (plan.setting("narrow") == 1) {
      multiply_narrowed(a_panel, b_panel, wire.dtype, is_begun, partial.local);
    } else {
      multiply_by_path(a_panel, b_panel, is_begun, path, partial.local);
    }
    is_begun = true;
  }
  if (!is_begun) fill(partial.local, 0);
  Tensor local = partial.local;
  if (!(partial_as == c.sharding)) {
    local = combine(comm, partial, partial_as.owner_boxes(c.shape), c.sharding.owner_boxes(c.shape),
                    summed, fold_by(ReduceKind::kSum));
  }
  if (local.is_defined()) local = cuop::cast(local, c.dtype);
  const DistTensor result(a.comm_ptr(), c.sharding, c.shape, c.dtype, local, a.device());
  return moved_to(result, plan.outputs.back().sharding, wire_of("sparse_c"), 1);
}

}  // namespace

Operation matmul_operation(const Wire& wire, ProductPath path) {
  Operation operation{"matmul" + wire.text() + ", product " + name(path),  // made for every call
                      {"A", "B"},
                      std::bind_front(plan_product, wire, path),
                      std::bind_front(execute_product, wire, path)};
  if (path == ProductPath::kDense) {
    operation.alone = [](const Plan& plan, const std::vector<Tensor>& inputs) {
      const DType dtype = plan.outputs[0].dtype;
      return cuop::matmul(cuop::cast(inputs[0], dtype), cuop::cast(inputs[1], dtype));
    };
  }
  return operation;
}

DistTensor matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options,
                  const Wire& wire, ProductPath path) {
  return run_sharded(matmul_operation(wire, path), {a, b}, options);
}

Tensor matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                        const CallOptions& options, const Wire& wire, ProductPath path) {
  return run_rooted(comm, matmul_operation(wire, path), {a, b}, options);
}

}  // namespace cuop::dist
