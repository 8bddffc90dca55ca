// Ranks that are processes joined by TCP: what is left when there is no MPI.
#pragma once

#include <memory>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/socket_rank.h"

namespace cuop::dist {

/// Collective: rank 0 listens at the address, all others come to it, then every rank is connected
/// to every other; each proves to the other that it knows the job's secret. CommunicationError
/// naming the ranks that did not come in time.
std::shared_ptr<Communicator> make_socket_communicator(const SocketRank& rank);

}  // namespace cuop::dist
