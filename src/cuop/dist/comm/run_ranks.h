// N ranks as threads of this process.
#pragma once

#include <functional>
#include <memory>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// Calls `work` once for each of `ranks` threads with a communicator of kind "thread", which is
/// also the thread's world() meanwhile; each rank computes on its share of this thread's cores.
/// Returns when all are done. An exception on one rank ends the others' waits: they raise
/// CommunicationError naming it and its message; the first original error is rethrown here.
void run_ranks(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work);

}  // namespace cuop::dist
