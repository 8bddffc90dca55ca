// What a JitConfig asks of the kernels that a call compiles and of the libraries that it uses.
#pragma once

#include <string>

#include "cuop/backend/execution.h"
#include "cuop/jit/build_options.h"
#include "cuop/operators/tuned/config.h"

namespace cuop {

/// True where the operator's plain kernel is asked for.
bool wants_simple(const JitConfig& config);
/// Why a GPU cannot keep to max_registers, or "": for kernels of our own.
std::string registers_obstacle(const JitConfig& config, Device device);

/// This thread's options with what the configuration demands: nothing on the CPU, whose kernels are
/// compiled ahead of time.
backend::ExecutionOptions with_demands(const JitConfig& config, Device device);
/// Tells apart what was chosen under this thread's demands from what was under others; "" for none.
std::string demands_text();

}  // namespace cuop
