// Which kernels of a matrix product a JitConfig leaves on a GPU: the library's, and those of our
// own that are compiled as its fields say.
#pragma once

#include <string>
#include <vector>

#include "cuop/operators/tuned/config.h"

namespace cuop {

/// Every kernel that does what the configuration says, complete; the library's is Kernel{} and
/// comes first where nothing is asked of how kernels are compiled. `edge` is the smaller side of
/// the result: tiles are chosen for it, and those of the first kernel are the rule's.
std::vector<Kernel> product_kernels(const JitConfig& config, DType dtype, int64_t edge,
                                    const backend::GpuLimits& limits);

/// Why there is none, or "".
std::string product_obstacle(const JitConfig& config, Device device, DType dtype,
                             const backend::GpuLimits& limits);

}  // namespace cuop
