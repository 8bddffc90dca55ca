// Exchanges between ranks that map each other's GPU memory, as cases of a suite.
#pragma once

#include <vector>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {

/// For ranks on one host, with a GPU for each of them.
std::vector<conformance::Case> fabric_cases();
/// Those about the order of streams.
std::vector<conformance::Case> fabric_order_cases();

}  // namespace cuop::dist::rank_test
