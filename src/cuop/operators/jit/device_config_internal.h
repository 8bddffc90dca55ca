// Internal: what of a JitConfig can be met on a GPU. On the CPU all of it can: what describes a GPU
// has no effect there (no_effect.h).
#pragma once

#include <string>

#include "cuop/operators/jit/config.h"

namespace cuop::detail {

/// Why the configuration cannot be met, or "". Ranges and contradictions between fields have been
/// checked.
std::string obstacle_on_gpu(const JitConfig& config, Device device, const KernelTraits& traits,
                            const backend::GpuLimits& limits);
/// The part about max_registers, for kernels of our own.
std::string registers_obstacle(const JitConfig& config, Device device);

/// True where the operator's plain kernel is asked for.
bool wants_simple(const JitConfig& config);

}  // namespace cuop::detail
