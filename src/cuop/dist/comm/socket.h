// Ranks that are processes joined by TCP: what is left when there is no MPI.
#pragma once

#include <memory>
#include <string>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

struct SocketRank {
  int rank = 0;
  int size = 1;
  std::string address = {};  ///< of rank 0, a name or a number
  int port = 0;              ///< of the launcher; rank 0 listens on one of the next 16
  double timeout = 0.0;      ///< seconds to wait for each other; 0 means CUOP_COMM_TIMEOUT
  std::string secret = {};   ///< that all ranks of the job know; "" for job_secret()
};

/// Collective: rank 0 listens at the address, all others come to it, then every rank is connected
/// to every other; each proves to the other that it knows the job's secret. CommunicationError
/// naming the ranks that did not come in time.
std::shared_ptr<Communicator> make_socket_communicator(const SocketRank& rank);

}  // namespace cuop::dist
