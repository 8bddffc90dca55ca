// Bringing a distributed tensor under another sharding. Collective, all of it.
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/exec/exchange.h"

namespace cuop::dist {

/// The same tensor under another sharding, by intersecting owner boxes: only pieces that are not
/// there already travel, no rank ever holds the whole unless the sharding says so.
DistTensor redistribute(const DistTensor& x, const Sharding& sharding);
/// The whole tensor on rank `root`, undefined elsewhere.
Tensor gather(const DistTensor& x, int root = 0);
/// The whole tensor on every rank.
Tensor gather_all(const DistTensor& x);

/// As `redistribute`, for use inside a call whose arguments are already agreed on.
DistTensor moved_to(const DistTensor& x, const Sharding& sharding);
/// The part of `x` that this rank holds.
Part part_of(const DistTensor& x);

}  // namespace cuop::dist
