// Sorting of strided lines.
#pragma once

#include <string>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::kernels {

/// Sorts every line of x along `axis` into `out` (x's dtype and shape, any strides).
void sort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
void sort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// The same for int64 positions.
void argsort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out);
void argsort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out);
/// Marks in `starts` where, in the order given, an element of x differs from the one before; all
/// contiguous.
void mark_runs_cpu(const Tensor& x, const Tensor& order, const Tensor& starts);
void mark_runs_cuda(const Tensor& x, const Tensor& order, const Tensor& starts);

struct SortForm {
  DType dtype = DType::kFloat32;
  bool gives_positions = false;
  bool is_wide = false;  ///< positions of 64 bits while they are sorted
};
jit::TextKernel sort_tiles_kernel(const SortForm& form);
jit::TextKernel merge_runs_kernel(const SortForm& form);
jit::TextKernel count_digits_kernel(const SortForm& form);
jit::TextKernel sort_by_digit_kernel(const SortForm& form);
jit::TextKernel mark_runs_kernel(DType dtype);

/// How often a record passes between memory and the device, one way, where tiles of a line are
/// merged, twice as long runs each time, and where it is sorted by every digit, after a pass that
/// counts. Digits that are equal in all of a line are not sorted by, which is not counted on.
int64_t accesses_by_merging(int64_t length);
int64_t accesses_by_digits(DType dtype);

/// Of a position while it is sorted; 0 where only values are.
int64_t position_bytes(const SortForm& form);
/// The keys and positions of so many records in memory, which may be null.
jit::SortedRuns runs_in(const SortForm& form, int64_t records, void* memory);

struct SortPlan {
  SortForm form;
  jit::SortLines arguments{};  ///< of the tiles; all but scratch memory
  int64_t blocks = 0, merge_blocks = 0;
  int64_t run_bytes = 0;  ///< of one set of runs, of which two are needed; 0 where a tile is enough
};
SortPlan plan_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                   const SortForm& form);

struct DigitSortPlan {
  SortForm form;
  jit::DigitSort arguments{};  ///< all but scratch memory
  int digits = 0;
  int64_t count_blocks = 0, blocks = 0;
  int64_t zero_bytes = 0;  ///< of scratch memory that begins as zeros
  int64_t run_bytes = 0;   ///< of what a pass leaves; one digit needs none, two digits one

  void set_scratch(void* zeros, void* even, void* odd);
};
DigitSortPlan plan_digit_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                              const SortForm& form);
void sort_by_digits_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                         const SortForm& form);

/// The key and what its bits mean, as kernel text names them.
std::string key_text(DType dtype);
/// The bits of +inf of a floating dtype, else 0.
uint64_t infinity_of(DType dtype);

}  // namespace cuop::kernels
