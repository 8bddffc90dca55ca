// Running an expression on tensors: the one entry for eager operators and fused groups alike.
#pragma once

#include <span>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// Outputs of one launch on a GPU, where each takes registers; the rest of more is another launch.
inline constexpr int kMaxGpuOutputs = 16;

struct BlockTable;

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

/// Computes all outputs on the device they are on. Types and shapes are the caller's to check.
/// NotImplementedError when the device has no kernel generator.
void run(const Expr& expr, const Bindings& bindings);

/// The CPU interpreter at a given instruction set, for tests.
void run_cpu(const Expr& expr, const Bindings& bindings, const BlockTable& table);

}  // namespace cuop::jit
