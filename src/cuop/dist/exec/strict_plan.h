// Plans of calls inside a StrictScope.
#pragma once

#include "cuop/dist/exec/planned.h"

namespace cuop::dist {

/// As `planned`. Inside a StrictScope GatherError for a plan that makes a tensor whole which lies
/// in parts: it names the tensor, how it lies, the bytes, the calls that do it openly, and the
/// strategies that do without.
std::shared_ptr<const Planned> planned_openly(const Operation& operation,
                                              const CallOptions& options,
                                              const std::vector<Placement>& inputs,
                                              const Machine& machine);

}  // namespace cuop::dist
