// The links between the GPUs of processes.
#pragma once

#include "cuop/core/device.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// Collective: bytes a second at which each rank's GPU reads the memory of the next rank's, while
/// all do so, of the slowest; 0 where not all of them read the memory of all others. Measured when
/// it is first asked for, and 0 while some have no room for that.
double peer_bandwidth(Communicator& comm, Device device);

}  // namespace cuop::dist
