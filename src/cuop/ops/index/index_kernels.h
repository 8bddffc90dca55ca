// What indexing needs from a device: positions of true elements, indices turned into offsets, and
// copies between a dense tensor and elements at listed offsets.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// How many elements of a contiguous bool mask are true. On a GPU this waits for the answer.
int64_t count_true_cpu(const Tensor& mask);
int64_t count_true_cuda(const Tensor& mask);

/// Writes, for each true element of a contiguous bool mask in row-major order, the sum over axes of
/// position * strides[axis] to `offsets`.
void mask_offsets_cpu(const Tensor& mask, const Strides& strides, int64_t* offsets);
void mask_offsets_cuda(const Tensor& mask, const Strides& strides, int64_t* offsets);

/// offsets[i] = (indices[i] counted from the end when negative) * stride for contiguous int64
/// indices; answers the position of the first one outside [-size, size), or -1. On a GPU this waits
/// for the answer, as the error must be thrown before anything is read or written there.
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

}  // namespace cuop::kernels
