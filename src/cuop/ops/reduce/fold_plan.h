// Internal: one fold over the reduced axes of a strided tensor, on the CPU.
#pragma once

#include <cstddef>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/fold.h"
#include "cuop/ops/reduce/load.h"
#include "cuop/ops/strided.h"

namespace cuop {

/// Elements are prepared by `load`, then, for powers of norms, by `transform` in place (float64).
struct FoldInput {
  FoldKind kind = FoldKind::kSum;
  DType element = DType::kFloat32;
  LoadMap map = LoadMap::kValue;
  void (*transform)(double* data, int64_t n, double parameter) = nullptr;
  double parameter = 0.0;
};

/// What is folded, in what order. States are numbered along `kept` (operand 0: x, operand 1: the
/// result), whose axes fall in stride so that memory is read in order; `by_columns` says that the
/// innermost axis of x in memory is a kept one.
struct FoldPlan {
  const Fold* fold = nullptr;
  FoldInput input;
  DType source = DType::kFloat32;
  LoadFunction load = nullptr;
  bool is_direct = false;  ///< elements are folded where they lie
  bool by_columns = false;
  LoopNest<2> kept;
  LoopNest<1> reduced;

  int64_t states() const { return kept.outer_size() * kept.inner().size; }
  int64_t length() const { return reduced.outer_size() * reduced.inner().size; }
};

/// `result` has the shape of x with every reduced axis of size 1; its elements are where the
/// results will lie. DTypeError when the elements cannot be loaded as asked.
FoldPlan plan_fold(const char* who, const FoldInput& input, const Tensor& x, const Layout& result,
                   const std::vector<int>& axes);

/// Folds the elements from `data` on into plan.states() states. The order of operations depends on
/// the plan only, not on the number of threads.
void run_fold(const FoldPlan& plan, const std::byte* data, std::byte* states);

}  // namespace cuop
