#include "cuop/jit/run.h"

#include "cuop/backend/slot.h"
#include "cuop/jit/cpu/block_kernels.h"

namespace cuop::jit {

namespace {

void run_on_cpu(const Expr& expr, const Bindings& bindings) {
  run_cpu(expr, bindings, block_table());
}

constexpr backend::Slot kRun{"elementwise", &run_on_cpu, &run_cuda};

}  // namespace

void run(const Expr& expr, const Bindings& bindings) {
  kRun(bindings.outputs.front()->device(), expr, bindings);
}

}  // namespace cuop::jit
