// N ranks as threads of this process.
#pragma once

#include <functional>
#include <memory>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

using RankWork = std::function<void(const std::shared_ptr<Communicator>&)>;

/// Calls `work` once for each of `ranks` threads with a communicator of kind "thread", which is
/// also the thread's world() meanwhile; each rank computes on its share of this thread's cores, or
/// where the current device is a GPU on a GPU of its own as long as there are enough: rank r on the
/// r-th from the current one.
/// Returns when all are done. An exception on one rank ends the others' waits: they raise
/// CommunicationError naming it and its message; the first original error is rethrown here, one of
/// a failure that another rank has only where there is no other.
///
/// When the user interrupts (core/interrupt.h), the ranks' waits and long computations are ended,
/// and Interrupted is thrown when all ranks have ended. With `end_ranks`, that is called once to
/// end what else they do, and ranks that go on for half a second more are left to themselves: then
/// `work` must own all that it uses.
void run_ranks(int ranks, const RankWork& work, const std::function<void()>& end_ranks = {});
/// The same with the devices dealt out from `first` on.
void run_ranks(int ranks, Device first, const RankWork& work,
               const std::function<void()>& end_ranks = {});

}  // namespace cuop::dist
