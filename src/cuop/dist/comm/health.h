// From what ranks are seen to do to what is said of them.
#pragma once

#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// One rank as it is seen; `state` is not kStuck yet. `awaited` are ranks of the same list.
struct SeenRank {
  RankHealth health;
  std::vector<int> awaited = {};
};

/// Says of ranks that they are stuck: in an operation without progress for more than `limit`
/// seconds, and either waiting for nobody or for ranks that wait for each other alone. Whoever
/// waits for a rank outside of calls, or for one that is stuck by itself, is not: that one is
/// awaited. Ranks 0 and 1 wait for each other, 2 for 0: all three. 0 waits for 1, which computes:
/// none.
void mark_stuck(std::vector<SeenRank>& ranks, double limit);

}  // namespace cuop::dist
