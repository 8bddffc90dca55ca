// Batches of matrix products over ranks.
#pragma once

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// a [..., M, K] @ b [..., K, N] or [K, N]; leading dimensions are a batch and broadcast as NumPy's
/// matmul does. Strategies: "batch" (the longest batch dimension is split), "row" (M), "column"
/// (N), "grid" (several of them), "keep_a", "keep_b" (the result lies as that operand does),
/// "root". The dtype is the promoted one.
DistTensor batch_matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
/// The same on rank 0 of tensors given there.
Tensor batch_matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                              const CallOptions& options = {});

}  // namespace cuop::dist
