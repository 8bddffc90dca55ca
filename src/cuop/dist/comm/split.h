// Who ends up with whom in Communicator::split.
#pragma once

#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

struct SplitGroup {
  std::vector<int> members;  ///< ranks of the old communicator in the order of the new one
  int rank = -1;             ///< this rank's place among them
  int64_t number = 0;  ///< of this split among those of the old communicator, on all its ranks
};

/// Collective. With colours 0 1 0 1 and keys 0 0 -1 0 on ranks 0..3: ranks 0 and 2 get {2, 0},
/// ranks 1 and 3 get {1, 3}. A negative colour gets an empty group. `splits` is how many this rank
/// has made; ranks may differ in that after a failure which some of them met in the middle of one.
SplitGroup choose_split_group(Communicator& comm, int color, int key, int64_t splits = 0);

}  // namespace cuop::dist
