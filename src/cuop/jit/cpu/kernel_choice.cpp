#include "cuop/jit/cpu/kernel_choice.h"

namespace cuop::jit {

void KernelChoice::choose(const Program& program) {
  needs_block.assign(is_uniform.size(), false);
  kernels.clear();
  const auto is_one = [this](int16_t slot) { return is_uniform[static_cast<size_t>(slot)]; };
  for (const Instruction& step : program.code) {
    const auto& [first, second, third] = step.in;
    BlockKernel kernel = step.kernel;
    if (step.with_scalars.behind != nullptr && !is_one(first) && is_one(second) &&
        (step.arity == 2 || is_one(third))) {
      kernel = step.with_scalars.behind;
    } else if (step.with_scalars.before != nullptr && is_one(first) && !is_one(second)) {
      kernel = step.with_scalars.before;
    } else {
      for (int k = 0; k < step.arity; ++k) {
        needs_block[static_cast<size_t>(step.in[static_cast<size_t>(k)])] = true;
      }
    }
    kernels.push_back(kernel);
  }
  for (const Program::FoldStep& fold : program.reductions) {
    needs_block[static_cast<size_t>(fold.slot)] = true;
  }
}

}  // namespace cuop::jit
