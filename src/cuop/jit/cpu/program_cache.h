// The programs of this thread's recent expressions, so that small operations, which come again and
// again, are compiled once.
#pragma once

#include "cuop/jit/cpu/program.h"

namespace cuop::jit {

/// The expression compiled for the table. Good until this thread asks for the next one. Errors are
/// those of `compile`.
const Program& compiled(const Expr& expr, const BlockTable& table);

}  // namespace cuop::jit
