// Convolutions over ranks.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/conv/conv.h"

namespace cuop::dist {

/// x [N, C, spatial...], w [O, C / groups, kernel...], bias [O] or none, as ops/conv says, with one
/// (conv1d) to three spatial dimensions. Strategies: "batch" (images), "channel" (output channels),
/// "plane" (of volumes), "row" and "column" (with halos), "grid" (several of them), "root" when all
/// lies on one rank.
DistTensor conv(const DistTensor& x, const DistTensor& w, const DistTensor* bias = nullptr,
                const ConvOptions& options = {}, const CallOptions& call = {});
Tensor conv_from_root(const CommunicatorPtr& comm, const Tensor& x, const Tensor& w,
                      const Tensor& bias = {}, const ConvOptions& options = {},
                      const CallOptions& call = {});

}  // namespace cuop::dist
