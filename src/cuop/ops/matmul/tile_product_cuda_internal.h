// Internal: products by tiles on a GPU, kernels of our own that are compiled at run time.
#pragma once

#include <string>

#include "cuop/backend/kernel.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/tile_product_arguments.cuh"

namespace cuop::kernels {

/// The kernel with its open numbers chosen.
backend::Kernel completed_product(backend::Kernel kernel);

/// Why there is no such kernel of a product of float16, bfloat16, float32, float64 or a complex
/// dtype on a GPU of these limits, or "". `kernel` is complete; at most `max_registers` of a thread
/// where that is not 0.
std::string product_obstacle(const backend::Kernel& kernel, DType dtype,
                             const backend::GpuLimits& limits, int64_t max_registers);

/// How an operand is read: see Reading in tile_panel.cuh.
struct OperandReading {
  bool is_along_depth = false;
  int width = 1;
};

struct TileProductPlan {
  backend::Kernel kernel;  ///< complete
  DType dtype = DType::kFloat32;
  OperandReading a, b;
  bool conjugate_a = false;
  jit::TileProduct arguments{};
};
/// The product's operands must serve as long as the plan.
TileProductPlan plan_tile_product(const Product& product, const backend::Kernel& kernel);

jit::TextKernel tile_product_kernel(const TileProductPlan& plan);

/// What a kernel on matrix units multiplies: "float64", "tf32x3" for float32.
const char* unit_precision(DType dtype);

/// By the kernel, which has a tile; any strides, K is not 0. CompilationError that says why when
/// there is no such kernel.
void tile_product_cuda(Product& product, const backend::Kernel& kernel);

}  // namespace cuop::kernels
