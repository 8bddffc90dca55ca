#include "cuop/dist/exec/map.h"

#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/made_in_chunks.h"
#include "cuop/dist/exec/pipeline.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::dist {
namespace {

/// Blocks in chunks: while one is made the inputs of the next one come, and what was made before
/// goes where it is wanted.
DistTensor execute_in_chunks(const Plan& plan, const std::vector<DistTensor>& inputs,
                             const Mapping& mapping) {
  const Placement &output = plan.outputs[0], &wanted = plan.outputs.back();
  const CommunicatorPtr& comm = inputs.at(0).comm_ptr();
  const Device device = inputs[0].device();
  const auto own = static_cast<size_t>(comm->rank());
  const int64_t count = chunks_of(plan);
  const auto chunks = map_chunks(mapping.needed, plan.inputs, output.sharding, output.shape, count);
  const std::vector<Box> made = output.sharding.owner_boxes(output.shape);
  const MadeInChunks block(*comm, made, wanted.sharding.owner_boxes(output.shape), output.dtype,
                           device);

  std::vector<Part> sources, places;
  std::vector<Tensor> shared = block.tensors();  // by the stages
  const auto needed = [&](size_t i, const std::vector<Box>& of) {
    return needed_boxes(mapping.needed, i, inputs[i].ndim(), of);
  };
  const auto bring = [&](size_t i, const std::vector<Box>& boxes) {
    const DistTensor& input = inputs[i];
    fetch_into(*comm, sources[i], input.sharding().owner_boxes(input.shape()), boxes, places[i],
               input.dtype(), Travel{.is_relayed = is_relayed(plan, i), .is_own_placed = true});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DistTensor& input = inputs[i];
    const std::vector<Box> owners = input.sharding().owner_boxes(input.shape());
    const std::vector<Box> boxes = needed(i, made);
    sources.push_back(part_of(input));
    places.push_back(place_for(boxes[own], sources[i], input.dtype()));
    place_own(comm->rank(), sources[i], owners, boxes, places[i]);
    if (boxes != owners) sources[i].local = comm->readable_by_others(input.local());
    shared.insert(shared.end(), {sources[i].local, places[i].local});
    if (!chunks->is_cut[i]) bring(i, boxes);
  }
  const auto of_chunk = [&](int64_t chunk) { return chunk_of(made, chunks->axis, count, chunk); };
  Stages stages;
  stages.bring = [&](int64_t chunk) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (chunks->is_cut[i]) bring(i, needed(i, of_chunk(chunk)));
    }
  };
  stages.work = [&](int64_t chunk) {
    const Box mine = of_chunk(chunk)[own];
    if (mine.empty()) return;
    std::vector<Part> parts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Box box = needed(i, of_chunk(chunk))[own];
      parts.push_back({view_of(places[i], box), box, inputs[i].device()});
    }
    const Tensor place = block.place_of(mine);
    const Tensor result = mapping.work(parts, mine, &place);
    if (result.data() != place.data()) copy_into(place, result);
  };
  stages.take = [&](int64_t chunk) { block.take(of_chunk(chunk)); };
  const int rank = comm->rank();
  const bool is_apart = common_rank(plan.inputs) == rank && wanted.sharding.single_rank() == rank;
  run_pipeline(device, count, stages, {.is_apart = is_apart}, shared);
  return DistTensor(comm, wanted.sharding, output.shape, output.dtype, block.result(), device);
}

DistTensor execute_map(const Plan& plan, const std::vector<DistTensor>& inputs,
                       const Mapping& mapping) {
  if (chunks_of(plan) > 1) return execute_in_chunks(plan, inputs, mapping);
  const Placement& output = plan.outputs[0];
  const CommunicatorPtr& comm = inputs.at(0).comm_ptr();
  const std::vector<Box> made = output.sharding.owner_boxes(output.shape);
  const auto rank = static_cast<size_t>(comm->rank());
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DistTensor& input = inputs[i];
    const std::vector<Box> boxes = needed_boxes(mapping.needed, i, input.ndim(), made);
    parts.push_back({fetch(*comm, part_of(input), input.sharding().owner_boxes(input.shape()),
                           boxes, input.dtype(), Travel{.is_relayed = is_relayed(plan, i)}),
                     boxes[rank], input.device()});
  }
  const Device device = inputs[0].device();
  Tensor local;
  if (!made[rank].empty()) {
    local = mapping.work(parts, made[rank], nullptr);
  } else if (!made[rank].is_void) {
    local = empty(made[rank].shape(), output.dtype, device);
  }
  return DistTensor(comm, output.sharding, output.shape, output.dtype, local, device);
}

Tensor map_alone(const Plan& plan, const std::vector<Tensor>& inputs, const Mapping& mapping) {
  const Placement& output = plan.outputs[0];
  const Box made = whole_box(output.shape);
  if (made.empty()) return empty(output.shape, output.dtype, inputs[0].device());
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    const Part whole{input, whole_box(input.shape()), input.device()};
    const Box needed = needed_boxes(mapping.needed, i, input.ndim(), {made})[0];
    parts.push_back({view_of(whole, needed), needed, input.device()});
  }
  return mapping.work(parts, made, nullptr);
}

}  // namespace

Operation map_operation(std::string text, std::vector<std::string> names,
                        const DescribeMapping& describe) {
  const auto plan = [describe](const PlanArguments& given) {
    Mapping mapping = describe(given.inputs, given.strategy);
    mapping.inputs = given.inputs;
    mapping.wanted = given.output;
    return plan_map(mapping, given.machine, given.strategy);
  };
  const auto execute = [describe](const Plan& made, const std::vector<DistTensor>& inputs) {
    return execute_map(made, inputs, describe(made.inputs, made.strategy));
  };
  Operation operation{std::move(text), std::move(names), plan, execute};
  operation.alone = [describe](const Plan& made, const std::vector<Tensor>& inputs) {
    return map_alone(made, inputs, describe(made.inputs, made.strategy));
  };
  return operation;
}

}  // namespace cuop::dist
