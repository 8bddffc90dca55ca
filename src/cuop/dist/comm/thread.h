// Ranks that are threads of one process: buffers are copied straight from rank to rank.
#pragma once

#include <memory>
#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// The communicators of `size` ranks, in rank order; each is used by one thread.
std::vector<std::shared_ptr<Communicator>> make_thread_communicators(int size);

/// Tells the others that the rank of this communicator (of kind "thread") will not come again, so
/// that whoever waits for it raises at once instead of at the deadline.
void leave_thread_world(Communicator& comm);

}  // namespace cuop::dist
