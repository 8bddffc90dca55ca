// Planning a tensor's way from one sharding to another.
#pragma once

#include "cuop/dist/plan/plan.h"
#include "cuop/dist/plan/wire.h"

namespace cuop::dist {

/// The one way there is: every rank gets what it lacks of its new part. ShapeError, of this caller,
/// unless both shardings are of as many ranks.
Plan plan_redistribute(const Placement& x, const Sharding& to, const Machine& machine,
                       const Wire& wire = {});

}  // namespace cuop::dist
