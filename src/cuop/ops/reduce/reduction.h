// Internal: what each public reduction is made of: how elements are loaded and folded, and what a
// finished state means. The local operators and the partial results of ranks share it.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/axes.h"
#include "cuop/ops/reduce/fold_plan.h"
#include "cuop/ops/reduce/states_arguments.cuh"
#include "cuop/ops/reduce/sum_mode.h"

namespace cuop {

struct Reduction {
  ReduceKind kind = ReduceKind::kSum;
  SumMode mode = SumMode::kPlain;  ///< for kSum and kMean
  double parameter = 0.0;          ///< correction of kVar and kStd, order of kNorm
};

/// The dtype of the result; DTypeError when the reduction is not defined for elements of `dtype`.
DType result_dtype(const char* who, const Reduction& reduction, DType dtype);

/// How a reduction treats real elements (complex ones are taken apart first where that is needed).
FoldInput fold_input(const Reduction& reduction, DType dtype);
/// The squares of real elements that are multiplied by `scale` first.
FoldInput scaled_squares(double scale);

/// What becomes of states that have seen `count` elements each and are rounded to `result`.
jit::Finish finish_of(const Reduction& reduction, int64_t count, DType result);

/// What the states of a fold in host memory stand for, given that each saw `count` elements: a
/// contiguous tensor of as many values, in the dtype in which they arise. `result` is the dtype to
/// round to.
Tensor finish_states(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                     int64_t count, DType result);

/// x with an axis of one element behind the others, along which each element is reduced alone;
/// ShapeError where a tensor has no room for it.
Tensor with_own_axis(const char* who, const Tensor& x);
/// The same check for a tensor of so many dimensions.
void check_takes_axis(const char* who, int ndim);

/// The values of a whole reduction; errors name `who`.
Tensor reduce(const char* who, Reduction reduction, const Tensor& x, Axes axes, bool keepdims,
              const Tensor* out);

/// Fills `result` with the value over no element; ShapeError when there is none.
void fill_empty(const char* who, const Reduction& reduction, const Tensor& result);

}  // namespace cuop
