// A fused expression one operation at a time, for as long as its own kernel is being compiled.
#pragma once

#include <functional>

#include "cuop/jit/bindings.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// Runs an expression of one operation; false when that cannot be done without compiling.
using RunStep = std::function<bool(const Expr&, const Bindings&)>;

/// Whether the expression has several operations and gives the same bits one by one: values are
/// rounded at each step in either case, but a reduction folds in another order when it reads what
/// steps wrote. Outputs must not be what is read later.
bool can_run_in_steps(const Expr& expr, const Bindings& bindings);

/// Computes every output through `run_step`, each operation reading its arrays and writing its
/// result. False, with the outputs in any state, as soon as a step cannot be run.
bool run_in_steps(const Expr& expr, const Bindings& bindings, const RunStep& run_step);

}  // namespace cuop::jit
