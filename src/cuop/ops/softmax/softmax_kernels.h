// Internal: the device kernels behind softmax.h, and the loops of the CPU's.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"

namespace cuop::kernels {

/// x and out are contiguous, of one floating dtype, and either the same memory or apart.
void softmax_cpu(const Tensor& x, int axis, bool is_log, const Tensor& out);
void softmax_cuda(const Tensor& x, int axis, bool is_log, const Tensor& out);

/// One table for each T (float, double) and instruction set.
template <class T>
struct SoftmaxLoops {
  /// `count` rows of n elements one after the other; y may be x.
  void (*rows)(const T* x, T* y, int64_t count, int64_t n, bool is_log);
  /// Along n rows that are `stride` apart, for `width` <= kMaxWidth columns; y may be x.
  void (*columns)(const T* x, T* y, int64_t n, int64_t stride, int64_t width, bool is_log);
  static constexpr int64_t kMaxWidth = 256;
};

template <class Level, class T>
const SoftmaxLoops<T>& softmax_loops();

/// For x and y at these addresses.
jit::RowPlan softmax_rows_plan(int64_t length, DType dtype,
                               std::initializer_list<const void*> addresses);
jit::TextKernel softmax_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_log);
/// `lanes` threads share a column: 1 or 8.
jit::TextKernel softmax_columns_kernel(DType dtype, int lanes, bool is_log);

}  // namespace cuop::kernels
