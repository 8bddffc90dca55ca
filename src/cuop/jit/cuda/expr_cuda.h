// CUDA source for an expression on tensors reached in a given way: one kernel that reads every leaf
// and writes every output once. Shapes, strides and numbers are arguments of the kernel, so that
// one binary serves all of them.
#pragma once

#include <string>

#include "cuop/jit/cuda/loops.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

/// The kernel's entry, the same in every generated source.
inline constexpr const char* kEntry = "cuop_kernel";
inline constexpr int kElementwiseThreads = 256;

/// The only include is kernel text. NotImplementedError for a reduction that no kernel has.
std::string cuda_source(const Expr& expr, const Loops& loops);

/// All that the compiler needs but the architecture.
CompileRequest kernel_request(const Expr& expr, const Loops& loops);

/// The name for messages and listings: "add_exp_sum", from the operations in their order.
std::string kernel_title(const Expr& expr);

}  // namespace cuop::jit
