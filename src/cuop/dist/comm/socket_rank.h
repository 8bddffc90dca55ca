// A process among those that are joined by TCP, before they are.
#pragma once

#include <string>

namespace cuop::dist {

struct SocketRank {
  int rank = 0;
  int size = 1;
  std::string address = {};  ///< of rank 0, a name or a number
  int port = 0;              ///< of the launcher; rank 0 listens on one of the next 16
  double timeout = 0.0;      ///< seconds to wait for each other; 0 means CUOP_COMM_TIMEOUT
  std::string secret = {};   ///< that all ranks of the job know; "" for job_secret()
};

}  // namespace cuop::dist
