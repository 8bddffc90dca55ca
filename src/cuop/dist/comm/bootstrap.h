// The communicators that a thread works with when none is given: that of everybody who was started
// together, or its own.
#pragma once

#include <memory>

#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// This thread's communicator when it is a rank of run_ranks; else the process's, made on first use
/// from how the process was launched: mpirun and its kin give MPI, torchrun (and srun without MPI)
/// TCP sockets, a plain start one rank alone. Collective on first use. CommunicationError that says
/// what is missing when the launcher started ranks that cannot meet.
std::shared_ptr<Communicator> world();

/// This thread's communicator, null when none is set.
std::shared_ptr<Communicator> current_communicator();

/// Sets this thread's communicator until the end of the scope.
class CurrentCommunicator : NonCopyable {
 public:
  explicit CurrentCommunicator(std::shared_ptr<Communicator> comm);
  ~CurrentCommunicator();

 private:
  std::shared_ptr<Communicator> before_;
};

}  // namespace cuop::dist
