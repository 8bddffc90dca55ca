// Whether a JitConfig makes sense, and what of it can be met on a device. On the CPU all of it can:
// what describes a GPU has no effect there (no_effect.h).
#pragma once

#include <string>

#include "cuop/operators/tuned/config.h"

namespace cuop {

/// What of an operator decides which configurations can be met.
struct KernelTraits {
  bool takes_tile = false;
  GpuKernels gpu_kernels = GpuKernels::kOwn;
  DType dtype = DType::kFloat32;
  bool takes_block = true;  ///< its own GPU kernels exist for blocks of 128 to 1024 threads
};

/// CompilationError "who: ..." for values that make no sense, and when the configuration cannot be
/// met on the device, saying why. `limits` are those of a GPU.
void check_jit_config(const char* who, const JitConfig& config, Device device,
                      const KernelTraits& traits, const backend::GpuLimits& limits = {});

}  // namespace cuop
