// Element-wise work and transposition over ranks: where the parts lie alike, nothing is moved.
#pragma once

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// a + b with NumPy's broadcasting, in the promoted dtype. Strategies: "keep_a", "keep_b" (as that
/// input lies, when it has the result's shape), "row" (blocks of the longest dimension).
DistTensor add(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor subtract(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor multiply(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});
DistTensor divide(const DistTensor& a, const DistTensor& b, const CallOptions& options = {});

/// Exchanges two dimensions. Strategies: "keep" (parts stay, the sharding is exchanged), "row"
/// (blocks of the result's dimension dim0).
DistTensor transpose(const DistTensor& x, int64_t dim0 = 0, int64_t dim1 = 1,
                     const CallOptions& options = {});

/// The same with input and result on rank 0; also strategy "root".
Tensor add_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                     const CallOptions& options = {});
Tensor transpose_from_root(const CommunicatorPtr& comm, const Tensor& x, int64_t dim0 = 0,
                           int64_t dim1 = 1, const CallOptions& options = {});

}  // namespace cuop::dist
