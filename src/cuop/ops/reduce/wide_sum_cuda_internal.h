// Compensated and exact sums on a GPU: which kernel does what, apart from running it, so that a
// compiler can check the kernels and host threads run them where no GPU is.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/reduce/reduction.h"
#include "cuop/ops/reduce/wide_sum_arguments.cuh"

namespace cuop::kernels {

/// What a kernel of these sums is compiled for.
struct WideSumForm {
  enum class Kind : uint8_t { kShortRows, kRows, kColumns, kExact };
  Kind kind = Kind::kRows;
  DType source = DType::kFloat32;
  DType element = DType::kFloat32;  ///< what the CPU folds
  bool is_linear = true;            ///< elements of a state are one stride apart
  int team = 1;                     ///< threads that share a state, of short rows and exact sums
  bool by_columns = false;          ///< of exact sums
  bool gives_states = false;        ///< and no results
  DType result = DType::kFloat32;
};
jit::TextKernel wide_sum_kernel(const WideSumForm& form);
jit::TextKernel joined_sum_kernel(DType result, bool gives_states);

struct WideSumPlan {
  WideSumForm form;
  jit::WideSum arguments{};   ///< all but the addresses
  int64_t blocks = 0;         ///< that have something to do
  int64_t partial_bytes = 0;  ///< of scratch memory, where blocks share states
  int64_t arrivals = 0;       ///< counters, the same

  /// Results go where the fold has its results.
  void place_results(const FoldPlan& fold);
};
/// `fold` is of kind kCompensated or kExact; results of dtype `result` at their places, or states
/// in the order of the fold where it is null.
WideSumPlan plan_wide_sum(const FoldPlan& fold, const DType* result, int64_t multiprocessors);

/// States of sums of real x over the axes, in row-major order of the kept ones.
void wide_states_cuda(const char* who, const FoldInput& input, const Tensor& x,
                      const std::vector<int>& axes, const Tensor& states);

/// Sum or mean of real x over the axes.
void wide_sum_cuda(const char* who, const Reduction& reduction, const FoldInput& input,
                   const Tensor& x, const std::vector<int>& axes, const Tensor& result);

}  // namespace cuop::kernels
