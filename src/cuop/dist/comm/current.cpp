#include "cuop/dist/comm/current.h"

namespace cuop::dist {

namespace {
thread_local std::shared_ptr<Communicator> current;
}

std::shared_ptr<Communicator> current_communicator() { return current; }

CurrentCommunicator::CurrentCommunicator(std::shared_ptr<Communicator> comm)
    : before_(std::move(current)) {
  current = std::move(comm);
}

CurrentCommunicator::~CurrentCommunicator() { current = std::move(before_); }

}  // namespace cuop::dist
