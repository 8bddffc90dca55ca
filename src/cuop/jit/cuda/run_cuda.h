// Expressions on a GPU, each as one generated kernel.
#pragma once

#include "cuop/jit/bindings.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// As `run` (jit/run.h), for tensors of one GPU, on this thread's current stream of it.
void run_cuda(const Expr& expr, const Bindings& bindings);

}  // namespace cuop::jit
