#include "cuop/dist/exec/map.h"

#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/create/create.h"

namespace cuop::dist {
namespace {

DistTensor execute_map(const Plan& plan, const std::vector<DistTensor>& inputs,
                       const Mapping& mapping) {
  const Placement& output = plan.outputs[0];
  const CommunicatorPtr& comm = inputs.at(0).comm_ptr();
  const std::vector<Box> made = output.sharding.owner_boxes(output.shape);
  const auto rank = static_cast<size_t>(comm->rank());
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DistTensor& input = inputs[i];
    const std::vector<Box> boxes = needed_boxes(mapping.needed, i, input.ndim(), made);
    parts.push_back({fetch(*comm, part_of(input), input.sharding().owner_boxes(input.shape()),
                           boxes, input.dtype()),
                     boxes[rank], input.device()});
  }
  const Device device = inputs[0].device();
  Tensor local;
  if (!made[rank].empty()) {
    local = mapping.work(parts, made[rank]);
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
  return mapping.work(parts, made);
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
