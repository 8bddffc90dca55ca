// The tensors and numbers that an expression is run on.
#pragma once

#include <span>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop::jit {

/// Outputs of one launch on a GPU, where each takes registers; the rest of more is another launch.
inline constexpr int kMaxGpuOutputs = 16;

/// What an expression is run on. Nothing is owned.
struct Bindings {
  Shape shape;                            ///< of the iteration
  int reduced_axes = 0;                   ///< how many trailing axes the reductions cover
  std::span<const Tensor* const> leaves;  ///< broadcastable to `shape`
  std::span<const Scalar> parameters;
  /// Of `shape`, or of its leading part for reductions (any layout of as many elements). An output
  /// may be exactly a leaf's view, or share no memory with any leaf.
  std::span<const Tensor* const> outputs;
};

}  // namespace cuop::jit
