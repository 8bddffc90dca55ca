// Compiling kernels before they are needed, for a GPU that need not be here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuop/core/dtype.h"

namespace cuop::jit {

struct WarmUp {
  std::string arch;              ///< "sm_90a"; "" for this process's first GPU
  std::vector<std::string> ops;  ///< names of elementwise operations, sum, max, ...; {}: all
  std::vector<DType> dtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
};

/// Puts into the cache on disk the kernels of these operations on contiguous tensors of one shape,
/// and of reductions over all elements and over rows. Returns how many kernels that were, compiled
/// now or there already. ExecutionError for an unknown operation; DeviceError when there is no GPU
/// to name the architecture; errors as compile_kernel.
int64_t warm_kernels(const WarmUp& wanted);

}  // namespace cuop::jit
