// The GPU's kernels of indexing, named apart from running them, so that a compiler can check them
// where no GPU is.
#pragma once

#include <memory>

#include "cuop/core/divide_up.h"
#include "cuop/core/storage.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/index/index_arguments.cuh"
#include "cuop/ops/index/index_kernels.h"

namespace cuop::kernels {

inline constexpr int kIndexThreads = 256;
/// Blocks for a loop with one element a thread at a time.
inline int64_t index_blocks(int64_t count) { return divide_up(count, kIndexThreads); }

jit::TextKernel list_indices_kernel();
jit::TextKernel count_mask_kernel();
jit::TextKernel list_mask_kernel(bool is_wide);
jit::TextKernel enter_offsets_kernel();
jit::TextKernel keep_last_offsets_kernel();

/// What a copy by offsets is compiled for.
struct ListedCopyForm {
  int64_t itemsize = 4;
  int width = 1;  ///< elements a thread takes at once
  int axes = 1;   ///< 0: asked of the arguments
  bool is_gather = true;
  bool is_wide = false;  ///< 64-bit counting
};
jit::TextKernel listed_copy_kernel(const ListedCopyForm& form);
struct ListedCopyPlan {
  ListedCopyForm form;
  jit::ListedCopy arguments{};
};
ListedCopyPlan plan_listed_copy(const OffsetCopy& copy, bool is_gather);

/// The table with jit::kNoOffset in place of all but the last of equal offsets; count is at
/// least 1.
std::shared_ptr<Storage> keep_last_offsets(const int64_t* offsets, int64_t count, Device device);

}  // namespace cuop::kernels
