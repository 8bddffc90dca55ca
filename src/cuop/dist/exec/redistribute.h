// Bringing a distributed tensor under another sharding. Collective, all of it.
#pragma once

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/plan/wire.h"

namespace cuop::dist {

/// The same tensor under another sharding, by intersecting owner boxes: only pieces that are not
/// there already travel, no rank ever holds the whole unless the sharding says so. Of a narrow wire
/// each row of a piece (its last axis) is scaled by a power of two; DTypeError for elements that
/// are no floats.
DistTensor redistribute(const DistTensor& x, const Sharding& sharding, const Wire& wire = {});
/// The whole tensor on rank `root`, in memory of its own, undefined elsewhere. IndexError for a
/// `root` that is no rank.
Tensor gather(const DistTensor& x, int64_t root = 0);
/// The whole tensor on every rank, in memory of its own.
Tensor gather_all(const DistTensor& x);
/// The same for a conversion `who` that nobody called gather. Where x lies on every rank already
/// this waits for nobody; else inside a StrictScope a GatherError on all ranks unless x has one
/// element or none.
Tensor whole(const DistTensor& x, const char* who);

/// Every rank's `tensor`, all of one shape and dtype, combined element by element in rank order: on
/// every rank, or on `root` and undefined elsewhere. What comes back is on the rank's tensor's
/// device.
Tensor all_reduce(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op);
Tensor reduce_to(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op, int root = 0);

}  // namespace cuop::dist
