// Products of cuBLASLt by the algorithm that the tuner has stored for the problem.
#pragma once

#include "cuop/backend/cuda/cublaslt.h"

namespace cuop::kernels {

/// The product by the best algorithm that is known; searches first where the caller asked for it
/// (tune/library_tuning.h).
void tuned_gemm(const char* who, const backend::cuda::GemmShape& shape, const Scalar& alpha,
                const void* a, const void* b, const Scalar& beta, void* c, Stream stream);

}  // namespace cuop::kernels
