// Boxes that GPUs of several processes share, as cases of a suite.
#pragma once

#include <vector>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {

/// For ranks on one host that map each other's GPU memory.
std::vector<conformance::Case> box_cases();

}  // namespace cuop::dist::rank_test
