// The communicator of everybody who was started together.
#pragma once

#include <memory>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// This thread's communicator when it is a rank of run_ranks; else the process's, made on first use
/// from how the process was launched: mpirun and its kin give MPI, torchrun (and srun without MPI)
/// TCP sockets, a plain start one rank alone. Collective on first use. CommunicationError that says
/// what is missing when the launcher started ranks that cannot meet.
std::shared_ptr<Communicator> world();

}  // namespace cuop::dist
