// The same decision on every rank, and one failure for all (protocols over any communicator).
//
// A call that all ranks make goes through `run_together`:
//   1. A communicator that failed in an earlier call is recovered: all ranks meet. A rank that does
//      not know of the failure yet (it came too late to the failed call) raises it first.
//   2. Every rank runs `prepare`: checks, planning, allocation, no communication. One whose GPU has
//   failed behind an earlier call fails here.
//   3. One all_gather of 24 bytes a rank: did it succeed, and a hash of the call's text. When a
//   rank
//      failed, its message follows in a second all_gather: it rethrows its own error, all others
//      raise CommunicationError naming the rank and the message. When the texts differ, all raise
//      CommunicationError naming both. The communicator stays usable in both cases.
//   4. Every rank runs `body`. An exception there, or a GPU that has failed by its end, aborts the
//      communicator, which wakes the ranks that wait for this one; they raise too.
//   5. One all_gather of 24 bytes closes the call, so that no rank returns while another failed.
//
// Example, ranks 0..2 call matmul and rank 1 finds a wrong shape: after step 3 rank 1 raises its
// ShapeError, ranks 0 and 2 raise "matmul [4, 5] x [5, 3]: rank 1 of 3 failed: matmul: ...".
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// The least, the greatest, over all ranks, on all ranks. Collective, as all below.
int64_t agree_min(Communicator& comm, int64_t value);
int64_t agree_max(Communicator& comm, int64_t value);
double agree_min(Communicator& comm, double value);
double agree_max(Communicator& comm, double value);
/// Whether all ranks say yes.
bool agree_all(Communicator& comm, bool value);
/// CommunicationError on every rank, naming two ranks and what they gave, unless all ranks gave the
/// same text.
void agree_same(Communicator& comm, std::string_view who, std::string_view text);

/// Every rank's text, on every rank, in rank order.
std::vector<std::string> gather_texts(Communicator& comm, std::string_view text);
/// Root's text on every rank.
std::string broadcast_text(Communicator& comm, std::string_view text, int root);

/// Steps 1 to 3 above. `call` is the operation with all that must be the same on all ranks.
void prepare_together(Communicator& comm, std::string_view call,
                      const std::function<void()>& prepare);
/// What `make` makes. An error of it takes the place of the call that was to come: step 3, on all
/// ranks.
template <class Make>
auto make_together(Communicator& comm, std::string_view call, Make&& make) {
  std::exception_ptr error;
  try {
    return make();
  } catch (...) {
    error = std::current_exception();
  }
  prepare_together(comm, call, [&] { std::rethrow_exception(error); });
  std::rethrow_exception(error);
}
/// Steps 1 to 5.
void run_together(Communicator& comm, std::string_view call, const std::function<void()>& prepare,
                  const std::function<void()>& body);

}  // namespace cuop::dist
