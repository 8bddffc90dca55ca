// The communicator of one rank: every operation is a copy, so callers need no special case for one.
#pragma once

#include <memory>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

std::shared_ptr<Communicator> make_self_communicator();

}  // namespace cuop::dist
