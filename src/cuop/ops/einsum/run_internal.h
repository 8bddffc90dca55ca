// Internal: the steps of a contraction, followed on tensors, and the memory that this takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cuop/core/contraction.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/work_figures.h"

namespace cuop::pairwise {

/// How the operands lie and, behind them, what each step makes, so that the pairs copy least. The
/// last is row-major.
std::vector<Layout> step_layouts(const Contraction& contraction,
                                 const std::vector<ContractionStep>& steps,
                                 const std::vector<Layout>& operands);

/// What the last step makes, in `out` if that is given. All operands have one dtype; each is let go
/// when it was taken.
Tensor run_steps(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                 std::vector<Tensor> operands, const std::optional<Tensor>& out);

/// Adds up slices that come in a row: 16-bit floats in float32, bool by "or".
class SliceSums {
 public:
  /// `made` is number `place` of `count` slices of this block of the result, which has their sum
  /// after the last one.
  void add(const Tensor& made, const Tensor& block, int64_t place, int64_t count);

 private:
  Tensor total_;
};

/// A run that is not made.
struct RunSizes {
  std::vector<Layout> operands;
  std::vector<int64_t> held = {};  ///< bytes that each operand takes until it was used
  std::optional<Layout> out = {};  ///< of the output if it is given
  DType dtype = DType::kFloat32;
  std::optional<DType> widened = {};  ///< of the output, where it is not that
  Device device = kCpu;
  WorkFigures figures = {};
  /// Every operand and result of a pair is taken to be copied: then no smaller run takes more.
  bool is_any_smaller = false;
};
/// The most bytes that tensors of such a run have at a time, without operands and `out`.
int64_t run_bytes(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                  const RunSizes& sizes);

}  // namespace cuop::pairwise
