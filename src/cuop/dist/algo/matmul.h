// Matrix products over ranks, and batches of them; the planner (plan/matmul_plan.h) chooses the
// grid.
#pragma once

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// C [M, N] = A [M, K] @ B [K, N] in the promoted dtype of both. Strategies: "row", "column",
/// "block_2d", "k_split". The result stays where it is computed unless `options.output` says
/// otherwise; `options.machine->memory` limits what a rank may hold. ShapeError, MemoryError.
DistTensor matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});

/// The same with both matrices on rank 0 and the product there; also strategy "root".
Tensor matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                        const CallOptions& options = {});

/// a [..., M, K] @ b [..., K, N] or [K, N]; leading dimensions are a batch and broadcast as NumPy's
/// matmul does. Strategies: "batch" (the longest batch dimension is split), "row" (M), "column"
/// (N), "grid" (several of them), "keep_a", "keep_b" (the result lies as that operand does),
/// "root". The dtype is the promoted one.
DistTensor batch_matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
/// The same on rank 0 of tensors given there.
Tensor batch_matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                              const CallOptions& options = {});

}  // namespace cuop::dist
