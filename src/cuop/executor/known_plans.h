// Plans that this process has made: a search takes milliseconds, which a call may take as a whole.
#pragma once

#include <string>

#include "cuop/executor/tile_plan.h"

namespace cuop::executor {

/// plan_tiles() of the problem, which `text` tells apart from others of the same arrays, sizes and
/// work. A plan that was made for the same before is returned as it was.
TilePlan plan_once(const std::string& text, const TileProblem& problem, const TileMachine& machine,
                   int64_t least_tiles);

}  // namespace cuop::executor
