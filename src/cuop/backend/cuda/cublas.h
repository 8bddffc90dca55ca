// What cuBLASLt lacks, from cuBLAS: products with symmetric matrices and solutions of triangular
// systems.
#pragma once

#include "cuop/backend/blas_calls.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// For float, double, std::complex<float> and std::complex<double>, computed in these types
/// without shortcuts. Starts the work on the stream; the call's coefficients are read at once.
/// DeviceError when there is no cuBLAS, ExecutionError for what it refuses.
template <class T>
void symm(const blas::SymmCall<T>& call, Stream stream);
template <class T>
void trsm(const blas::TrsmCall<T>& call, Stream stream);

}  // namespace cuop::backend::cuda
