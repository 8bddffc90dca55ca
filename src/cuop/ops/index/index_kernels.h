// What indexing needs from a device: positions of true elements, indices turned into offsets, and
// copies between a dense tensor and elements at listed offsets.
#pragma once

#include <cstdint>
#include <memory>

#include "cuop/core/divide_up.h"
#include "cuop/core/storage.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/index/index_arguments.cuh"

namespace cuop::kernels {

/// How many elements of a contiguous bool mask are true. On a GPU this waits for the result.
int64_t count_true_cpu(const Tensor& mask);
int64_t count_true_cuda(const Tensor& mask);

/// Writes, for each true element of a contiguous bool mask in row-major order, the sum over axes of
/// position * strides[axis] to `offsets`.
void mask_offsets_cpu(const Tensor& mask, const Strides& strides, int64_t* offsets);
void mask_offsets_cuda(const Tensor& mask, const Strides& strides, int64_t* offsets);

/// offsets[i] = (indices[i] counted from the end when negative) * stride for contiguous int64
/// indices; returns the position of the first one outside [-size, size), or -1. On a GPU this waits
/// for the result, as the error must be thrown before anything is read or written there.
int64_t index_offsets_cpu(const Tensor& indices, int64_t size, int64_t stride, int64_t* offsets);
int64_t index_offsets_cuda(const Tensor& indices, int64_t size, int64_t stride, int64_t* offsets);

/// table += part for int64 tensors of one shape, the table contiguous.
void add_offsets_cpu(Tensor& table, const Tensor& part);
void add_offsets_cuda(Tensor& table, const Tensor& part);

/// dense[r, p] <-> sparse[r at offsets[p]] for all p < count and all r of `rest`; there is at least
/// one of each.
struct OffsetCopy {
  Device device;
  void* dense = nullptr;
  void* sparse = nullptr;
  int64_t itemsize = 1;
  const int64_t* offsets = nullptr;  ///< in elements of the sparse side
  int64_t count = 0;
  int64_t dense_stride = 1;  ///< between successive p on the dense side, elements
  Shape rest;
  Strides dense_rest;
  Strides sparse_rest;
};
/// sparse -> dense, in parallel.
void gather_offsets_cpu(const OffsetCopy& copy);
void gather_offsets_cuda(const OffsetCopy& copy);
/// dense -> sparse. Where offsets repeat the last one stays; `is_unique` promises that none do.
void scatter_offsets_cpu(const OffsetCopy& copy, bool is_unique);
void scatter_offsets_cuda(const OffsetCopy& copy, bool is_unique);

/// Blocks for a loop with one element a thread at a time.
inline int64_t index_blocks(int64_t count) { return divide_up(count, jit::kIndexThreads); }

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
