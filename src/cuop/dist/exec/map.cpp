#include "cuop/dist/exec/map.h"

#include "cuop/ops/create/create.h"

namespace cuop::dist {

DistTensor execute_map(const Plan& plan, const std::vector<DistTensor>& inputs,
                       const NeededBox& needed, const LocalWork& work) {
  const Placement& output = plan.outputs[0];
  const CommunicatorPtr& comm = inputs.at(0).comm_ptr();
  const std::vector<Box> made = output.sharding.owner_boxes(output.shape);
  const auto rank = static_cast<size_t>(comm->rank());
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DistTensor& input = inputs[i];
    const std::vector<Box> boxes = needed_boxes(needed, i, input.ndim(), made);
    parts.push_back({fetch(*comm, part_of(input), input.sharding().owner_boxes(input.shape()),
                           boxes, input.dtype()),
                     boxes[rank], input.device()});
  }
  const Device device = inputs[0].device();
  Tensor local;
  if (!made[rank].empty()) {
    local = work(parts, made[rank]);
  } else if (!made[rank].is_void) {
    local = empty(made[rank].shape(), output.dtype, device);
  }
  return DistTensor(comm, output.sharding, output.shape, output.dtype, local, device);
}

}  // namespace cuop::dist
