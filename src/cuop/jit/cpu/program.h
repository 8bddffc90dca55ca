// An expression compiled for the CPU interpreter: a list of block loops over numbered slots. A slot
// is one block of elements: a leaf's, a parameter's, an output's, or a register that is used again
// as soon as its value is dead.
#pragma once

#include <vector>

#include "cuop/jit/cpu/block_kernels.h"

namespace cuop::jit {

struct Instruction {
  BlockKernel kernel;
  int16_t out;
  std::array<int16_t, kMaxArity> in;
  int16_t arity;
  ScalarKernels with_scalars;
};

struct Program {
  struct FoldStep {
    int16_t slot;    ///< where the elements are, in float32 for 16-bit floats
    int16_t output;  ///< which output gets the result
    DType dtype;     ///< of the elements
    ReduceKernel kernel;
    BlockKernel to_16bit;  ///< conversion of the result, null where none is needed
  };

  // Slots: leaves, then parameters, then outputs, then registers.
  std::vector<Instruction> code;
  std::vector<FoldStep> reductions;
  std::vector<DType> leaf_dtypes;
  std::vector<bool> is_leaf_used;
  std::vector<DType> parameter_dtypes;
  std::vector<DType> output_dtypes;
  std::vector<bool> is_output_reduced;
  int register_count = 0;
  int64_t widest = 1;  ///< bytes of the largest element of any slot
  int64_t cost = 0;    ///< per element, an addition being 1

  int parameter_slot(int parameter) const {
    return static_cast<int>(leaf_dtypes.size()) + parameter;
  }
  int output_slot(int output) const {
    return parameter_slot(static_cast<int>(parameter_dtypes.size())) + output;
  }
  int slot_count() const {
    return output_slot(static_cast<int>(output_dtypes.size())) + register_count;
  }
};

/// Which kernel does each instruction where some slots hold one value for all elements.
struct KernelChoice {
  std::vector<bool> is_uniform;  ///< by slot: the caller's word, before `choose`
  // Of `choose`:
  std::vector<BlockKernel> kernels;  ///< by instruction
  std::vector<bool> needs_block;     ///< by slot: a uniform value must be there for each element

  /// Kernels that read one element of a uniform slot where there are such.
  void choose(const Program& program);
};

/// Replaces `program` (keeping its memory). Nodes that no output needs are left out.
/// NotImplementedError when the table lacks a kernel that the expression needs.
void compile(const Expr& expr, const BlockTable& table, Program& program);

/// The expression compiled for the table. Good until this thread asks for the next one. Errors are
/// those of `compile`.
const Program& compiled(const Expr& expr, const BlockTable& table);

}  // namespace cuop::jit
