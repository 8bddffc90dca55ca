// Bringing a distributed tensor under another sharding within a call whose ranks agree already.
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/wire.h"

namespace cuop::dist {

/// The same tensor under another sharding; only pieces that are not there already travel. What has
/// to be copied to its new place is put into `order` on the way.
DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const AxisOrder& order = {});
/// In another form on the way, of which elements along `axis` share a scale.
DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const Wire& wire, int axis);
/// The part of `x` that this rank holds.
Part part_of(const DistTensor& x);

}  // namespace cuop::dist
