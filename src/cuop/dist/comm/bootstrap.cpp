#include "cuop/dist/comm/bootstrap.h"

#include <mutex>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/launch.h"
#include "cuop/dist/comm/mpi.h"
#include "cuop/dist/comm/self.h"
#include "cuop/dist/comm/socket.h"

namespace cuop::dist {

namespace {

thread_local std::shared_ptr<Communicator> current;

std::shared_ptr<Communicator> connect_mpi(const Launch& launch) {
  const std::string reason = mpi_unavailable_reason();
  if (!reason.empty()) {
    throw CommunicationError(
        cat("world: ", launch.launcher, " started ", launch.size, " ranks, but ", reason));
  }
  auto comm = make_mpi_communicator();
  if (comm->size() == launch.size) return comm;
  throw CommunicationError(cat("world: ", launch.launcher, " started ", launch.size,
                               " ranks, but the MPI that libcuop_mpi.so was built with sees ",
                               comm->size(), ": it is not the MPI of this launcher"));
}

std::shared_ptr<Communicator> connect_sockets(const Launch& launch) {
  if (launch.address.empty() || launch.port == 0) {
    throw CommunicationError(cat("world: ", launch.launcher, " started ", launch.size,
                                 " ranks but does not say where they meet: set MASTER_ADDR and "
                                 "MASTER_PORT, or start them with mpirun"));
  }
  return make_socket_communicator({launch.rank, launch.size, launch.address, launch.port});
}

std::shared_ptr<Communicator> connect(const Launch& launch) {
  if (launch.size == 1) return make_self_communicator();
  return launch.is_mpi() ? connect_mpi(launch) : connect_sockets(launch);
}

}  // namespace

std::shared_ptr<Communicator> world() {
  if (auto comm = current_communicator()) return comm;
  static auto& mutex = *new InterruptibleMutex("world: meeting the other ranks");
  static auto* const process_world = new std::shared_ptr<Communicator>;  // outlives all statics
  const std::lock_guard lock(mutex);
  if (!*process_world) {
    *process_world = connect(detect_launch());
    backend::set_local_ranks((*process_world)->local_size());
    trace::set_process_rank((*process_world)->rank());
  }
  return *process_world;
}

std::shared_ptr<Communicator> current_communicator() { return current; }

CurrentCommunicator::CurrentCommunicator(std::shared_ptr<Communicator> comm)
    : before_(std::move(current)) {
  current = std::move(comm);
}

CurrentCommunicator::~CurrentCommunicator() { current = std::move(before_); }

}  // namespace cuop::dist
