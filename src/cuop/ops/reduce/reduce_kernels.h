// Internal: the device kernels behind reduce.h.
#pragma once

#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/reduce/fold.h"
#include "cuop/ops/reduce/reduce_arguments.cuh"
#include "cuop/ops/reduce/reduction.h"

namespace cuop::kernels {

/// Writes the reduction of x over `axes` to `result`, which has the shape of x with those axes of
/// size 1.
void reduce_cpu(const char* who, const Reduction& reduction, const Tensor& x,
                const std::vector<int>& axes, const Tensor& result);

void reduce_cuda(const char* who, const Reduction& reduction, const Tensor& x,
                 const std::vector<int>& axes, const Tensor& result);

/// `states` (contiguous bytes) <- states of the fold of x over `axes`, in row-major order of the
/// kept axes. On a GPU they have the CPU's form; those of sums its bits too, but for plain ones.
void reduce_states_cpu(const char* who, const FoldInput& input, const Tensor& x,
                       const std::vector<int>& axes, const Tensor& states);
void reduce_states_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, const Tensor& states);
/// Bytes that these take beside x and the states. Pure: x has no memory.
int64_t fold_bytes_cpu(const FoldInput& input, const Tensor& x, const std::vector<int>& axes);
int64_t fold_bytes_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, int64_t multiprocessors);
/// into <- into with from, state by state; contiguous bytes, aligned as the states are.
void merge_states_cpu(const FoldInput& input, const Tensor& into, const Tensor& from);
void merge_states_cuda(const FoldInput& input, const Tensor& into, const Tensor& from);
/// As finish_states, of states that stay as they are; on a GPU values may be in their memory.
Tensor finish_states_cpu(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                         int64_t count, DType result);
Tensor finish_states_cuda(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                          int64_t count, DType result);

/// result <- position of the first largest (or smallest) element along the axis; `result` has the
/// shape of x with that axis of size 1.
void arg_reduce_cpu(const Tensor& x, int axis, bool is_max, const Tensor& result);
void arg_reduce_cuda(const Tensor& x, int axis, bool is_max, const Tensor& result);

/// result <- running sum of x along the axis; the dtype of `result` is what is added in.
void cumsum_cpu(const Tensor& x, int axis, const Tensor& result);
/// The same with sums of floats in double, each result rounded once.
void cumsum_cuda(const Tensor& x, int axis, const Tensor& result);

struct ScanPlan {
  bool by_tiles = false;  ///< else a thread a line
  jit::Scan arguments{};  ///< all but scratch memory
  int64_t blocks = 0;
  int64_t flags = 0;  ///< zeros of scratch memory
  int64_t sums = 0;   ///< of 16 bytes, the same
  void set_scratch(unsigned* zeros, void* values);
};
ScanPlan plan_scan(const Tensor& x, int axis, const Tensor& out);
jit::TextKernel scan_kernel(DType source, DType out, bool by_tiles);

/// Of kinds whose states are not values: kCompensated, kExact and kMoments.
jit::TextKernel merge_states_kernel(ReduceKind kind);
/// `value` is float32 or float64.
jit::TextKernel finish_states_kernel(ReduceKind kind, DType value);

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

/// Bytes that wide_states_cuda takes beside x and the states. Pure.
int64_t wide_bytes_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, int64_t multiprocessors);

/// Sum or mean of real x over the axes.
void wide_sum_cuda(const char* who, const Reduction& reduction, const FoldInput& input,
                   const Tensor& x, const std::vector<int>& axes, const Tensor& result);

}  // namespace cuop::kernels
