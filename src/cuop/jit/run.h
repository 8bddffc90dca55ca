// Running an expression on tensors: the one entry for eager operators and fused groups alike.
#pragma once

#include "cuop/jit/bindings.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

struct BlockTable;

/// Computes all outputs on the device they are on. Types and shapes are the caller's to check.
/// NotImplementedError when the device has no kernel generator.
void run(const Expr& expr, const Bindings& bindings);

/// The CPU interpreter at a given instruction set, for tests.
void run_cpu(const Expr& expr, const Bindings& bindings, const BlockTable& table);

/// As `run` (jit/run.h), for tensors of one GPU, on this thread's current stream of it.
void run_cuda(const Expr& expr, const Bindings& bindings);

}  // namespace cuop::jit
