// Internal: products of integers and bools on a GPU, and the kernels that they use.
#pragma once

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/matmul/integer_product_arguments.cuh"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

/// The kernel and its arguments. Of a symmetric a the lower triangle is read.
struct IntegerProductPlan {
  int own = 4;  ///< elements of a thread along each side of a tile
  bool is_symmetric = false;
  jit::IntegerProduct arguments{};
};
IntegerProductPlan plan_integer_product(const Product& product, bool is_symmetric);

jit::TextKernel integer_product_kernel(DType dtype, int own, bool is_symmetric);

/// Integers and bool, any strides; K may be 0.
void integer_product_cuda(const Product& product, bool is_symmetric = false);

}  // namespace cuop::kernels
