// Boxes that GPUs of several processes share, as cases of a suite.
#pragma once

#include <vector>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {

/// For ranks on one host that map each other's GPU memory.
std::vector<conformance::Case> box_cases();

/// The last rank, a process, is killed while it brings a piece. The others read the boxes to their
/// end; then their next call names it. 0 where it was so.
int run_killed_among_boxes(conformance::Rank comm);

}  // namespace cuop::dist::rank_test
