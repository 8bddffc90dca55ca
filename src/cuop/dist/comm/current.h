// The communicator that this thread works with when none is given.
#pragma once

#include <memory>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// This thread's communicator, null when none is set.
std::shared_ptr<Communicator> current_communicator();

/// Sets this thread's communicator until the end of the scope.
class CurrentCommunicator {
 public:
  explicit CurrentCommunicator(std::shared_ptr<Communicator> comm);
  ~CurrentCommunicator();
  CurrentCommunicator(const CurrentCommunicator&) = delete;
  CurrentCommunicator& operator=(const CurrentCommunicator&) = delete;

 private:
  std::shared_ptr<Communicator> before_;
};

}  // namespace cuop::dist
