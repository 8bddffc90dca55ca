// Who ends up with whom in Communicator::split.
#pragma once

#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

struct SplitGroup {
  std::vector<int> members;  ///< ranks of the old communicator in the order of the new one
  int rank = -1;             ///< this rank's place among them
};

/// Collective. With colours 0 1 0 1 and keys 0 0 -1 0 on ranks 0..3: ranks 0 and 2 get {2, 0},
/// ranks 1 and 3 get {1, 3}. A negative colour gets an empty group.
SplitGroup choose_split_group(Communicator& comm, int color, int key);

}  // namespace cuop::dist
