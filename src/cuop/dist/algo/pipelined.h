// Calls whose moves overlap with their arithmetic, chunk by chunk (exec/pipeline.h).
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/dist/exec/pipeline.h"

namespace cuop::dist {

/// C [M, N] = A [M, K] @ B [K, N] from rank 0 to rank 0 in the promoted dtype: rows of A go out,
/// are multiplied and come back in `chunks` chunks; with 0 the planner says in how many, or that
/// rank 0 multiplies alone. ExecutionError for fewer than 0, ShapeError for what does not fit.
Tensor matmul_pipelined_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                                  int64_t chunks, const Overlap& overlap = {},
                                  const CallOptions& options = {});

/// As all_reduce (exec/redistribute.h), bit by bit, in chunks: while one is combined the next is
/// fetched and the one before told to all. ExecutionError for fewer than 1.
Tensor all_reduce_pipelined(const CommunicatorPtr& comm, const Tensor& tensor, ReduceKind op,
                            int64_t chunks, const Overlap& overlap = {});

}  // namespace cuop::dist
