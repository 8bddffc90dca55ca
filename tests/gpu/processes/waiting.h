// What becomes of streams that wait for a rank whose process does something else.
#pragma once

#include <memory>
#include <string_view>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist::rank_test {

/// The last rank makes a call that its GPU does not come to, and then is "killed", is "stopped" or
/// has "left"; or is killed where what it sends is "passed_on". The status of this process.
int run_waiting(const std::shared_ptr<Communicator>& comm, std::string_view what);

}  // namespace cuop::dist::rank_test
