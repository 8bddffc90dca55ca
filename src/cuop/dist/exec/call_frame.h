// The frame of a call, with the figures at hand: the ranks agree on the arguments, plan, follow the
// plan and report. What exec/call.h makes of an operation, and what calibration times.
#pragma once

#include <variant>
#include <vector>

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// Predicted seconds from which on the ranks of a call measure what they are, if they have not yet:
/// before that the figures are assumed.
inline constexpr double kWorthMeasuring = 0.02;

/// What a call is worth that planned with assumed figures and would take long: nothing has moved.
struct ToMeasure {
  Device device;  ///< where this rank computes
  Communicator::Figures of = Communicator::Figures::kParts;
  Machine assumed;
};

/// Figures of root's calls on this device.
Communicator::Figures figures_of(Device device);

/// Collective: run_sharded (call.h), or the same on all ranks what they are to measure before it.
std::variant<DistTensor, ToMeasure> call_sharded(const Operation& operation,
                                                 const std::vector<DistTensor>& inputs,
                                                 const CallOptions& options);
/// Likewise run_rooted on these ranks.
std::variant<Tensor, ToMeasure> call_rooted(const CommunicatorPtr& comm, const Operation& operation,
                                            const std::vector<Tensor>& inputs,
                                            const CallOptions& options, int root = 0);

}  // namespace cuop::dist
