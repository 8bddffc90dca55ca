// Which kernel does each instruction where some slots hold one value for all elements.
#pragma once

#include <vector>

#include "cuop/jit/cpu/program.h"

namespace cuop::jit {

struct KernelChoice {
  std::vector<bool> is_uniform;  ///< by slot: the caller's word, before `choose`
  // Of `choose`:
  std::vector<BlockKernel> kernels;  ///< by instruction
  std::vector<bool> needs_block;     ///< by slot: a uniform value must be there for each element

  /// Kernels that read one element of a uniform slot where there are such.
  void choose(const Program& program);
};

}  // namespace cuop::jit
