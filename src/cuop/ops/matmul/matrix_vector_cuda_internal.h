// Internal: a matrix times a vector on a GPU, and the kernels for it.
#pragma once

#include <optional>

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/matrix_vector_arguments.cuh"

namespace cuop::kernels {

/// What a kernel is compiled for.
struct MatrixVectorForm {
  DType dtype = DType::kFloat32;
  int width = 1;  ///< columns of one access
  bool conjugate_a = false;
  int team = 256;          ///< threads that share a row
  bool is_column = false;  ///< neighbouring threads read neighbouring rows
  bool is_wide = false;    ///< counting in 64 bits
};
jit::TextKernel matrix_vector_kernel(const MatrixVectorForm& form);

struct MatrixVectorPlan {
  MatrixVectorForm form;
  jit::MatrixVector arguments{};  ///< but how blocks share a row
};
/// For a [batch..., M, K], b [batch..., K, 1] and c [batch..., M, 1] of any strides but nothing
/// when the batch cannot be walked with one stride of each.
std::optional<MatrixVectorPlan> plan_matrix_vector(const Product& product);

/// Every dtype; K may be 0. False, and nothing done, where there is no plan.
bool matrix_vector_cuda(const Product& product);

}  // namespace cuop::kernels
