// Sorting on a GPU: which kernels do what, apart from running them.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::kernels {

struct SortForm {
  DType dtype = DType::kFloat32;
  bool gives_positions = false;
  bool is_wide = false;  ///< positions of 64 bits while they are sorted
};
jit::TextKernel sort_tiles_kernel(const SortForm& form);
jit::TextKernel merge_runs_kernel(const SortForm& form);
jit::TextKernel mark_runs_kernel(DType dtype);

struct SortPlan {
  SortForm form;
  jit::SortLines arguments{};  ///< of the tiles; all but scratch memory
  int64_t blocks = 0, merge_blocks = 0;
  int64_t run_bytes = 0;  ///< of one set of runs, of which two are needed; 0 where a tile is enough

  /// The keys and positions in memory of run_bytes.
  jit::SortedRuns runs_in(void* memory) const;
};
SortPlan plan_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                   bool gives_positions);
/// The bits of +inf of a floating dtype, else 0.
uint64_t infinity_of(DType dtype);

}  // namespace cuop::kernels
