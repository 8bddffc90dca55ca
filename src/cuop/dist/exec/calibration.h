// What planning knows about the ranks of a communicator, measured on them.
#pragma once

#include <optional>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/cost/machine.h"
#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// Bytes of the device that measuring takes.
int64_t calibration_bytes(Device device);

/// Collective; `device` is where this rank computes. What these ranks measured before on machines
/// like theirs (kept among the tuner's choices), else what they measure now, all at the same time:
/// products in three dtypes, transforms, memory, the link to the next rank, short messages, short
/// calls. Takes about a second. The slowest rank counts, so that all have the same figures. Where
/// nothing may be measured (CUOP_TUNE_FROZEN) and nothing is kept, or a rank has no room for it,
/// what rank 0 assumes. `is_again` measures in any case. The communicator keeps the figures: `of`.
Machine calibrate(const CommunicatorPtr& comm, Device device, Communicator::Figures of,
                  const Machine& assumed, bool is_again = false);

/// Collective, by itself: the same for all calls on this communicator to come.
Machine calibrate(const CommunicatorPtr& comm, Device device, bool is_again);

/// What `ranks` threads of this process on GPUs, the one of `device` among them, have measured in
/// this process or an earlier one; none when nothing is kept. Waits for nobody.
std::optional<Machine> kept_figures(int ranks, Device device);

}  // namespace cuop::dist
