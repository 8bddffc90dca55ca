// Products by tiles on a GPU: what the kernels are given, and their launch.

#include "cuop/backend/library_use.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/arranged_product_internal.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/product_arguments_internal.h"

namespace cuop::kernels {

namespace {

using backend::Kernel;
using backend::KernelType;

/// The strides of a matrix seen by its lines and its depth: rows and columns of a, columns and rows
/// of b.
struct Steps {
  int64_t line, depth;
};

OperandReading reading_of(const Tensor& t, const Steps& steps) {
  OperandReading reading;
  reading.is_along_depth = steps.depth == 1;
  if (steps.depth != 1 && steps.line != 1) return reading;
  int64_t counts = reading.is_along_depth ? steps.line : steps.depth;
  for (int i = 0; i + 2 < t.ndim(); ++i) counts |= t.strides()[i];
  reading.width = jit::access_width(itemsize(t.dtype()), jit::kAccessBytes,
                                    reinterpret_cast<uintptr_t>(t.data()), counts);
  return reading;
}

Steps steps_of_a(const Tensor& a) { return {a.strides()[a.ndim() - 2], a.strides()[a.ndim() - 1]}; }
Steps steps_of_b(const Tensor& b) { return {b.strides()[b.ndim() - 1], b.strides()[b.ndim() - 2]}; }

/// Whether the copy engine can bring the operand's rows.
bool has_aligned_rows(const Tensor& t, const Steps& steps) {
  const OperandReading reading = reading_of(t, steps);
  const bool is_dense = steps.depth == 1 || steps.line == 1;
  return is_dense && reading.width * itemsize(t.dtype()) == jit::kAccessBytes;
}

/// The operand with rows that begin at multiples of 16 bytes; a matrix that serves several places
/// of the batch is copied once.
Tensor with_aligned_rows(const Tensor& t) {
  const Tensor once = distinct(t);
  const int64_t columns = once.shape().back(), together = jit::kAccessBytes / itemsize(t.dtype());
  Shape padded = once.shape();
  padded.back() = round_up(columns, together);
  const Tensor copy = slice(empty(padded, t.dtype(), t.device()), -1, 0, columns);
  copy_into(copy, once);
  return broadcast_to(copy, t.shape());
}

/// With accesses that end where the axis does: the last one would reach beyond the operand, though
/// only its first bytes are asked for.
OperandReading within(OperandReading reading, int64_t lines, int64_t depth) {
  while ((reading.is_along_depth ? depth : lines) % reading.width != 0) reading.width /= 2;
  return reading;
}

std::string text(const OperandReading& reading) {
  return jit::instance("Reading", reading.is_along_depth, reading.width);
}

}  // namespace

TileProductPlan plan_tile_product(const Product& product, const Kernel& kernel) {
  TileProductPlan plan;
  plan.kernel = kernel;
  plan.dtype = product.c.dtype();
  plan.a = reading_of(product.a, steps_of_a(product.a));
  plan.b = reading_of(product.b, steps_of_b(product.b));
  plan.conjugate_a = product.conjugate_a;
  jit::TileProduct& p = plan.arguments;
  describe_matrices(p, product);
  if (!kernel.is_bulk) {  // whose rows are padded
    plan.a = within(plan.a, p.rows, p.depth);
    plan.b = within(plan.b, p.columns, p.depth);
  }
  count_tiles(p, kernel.tile);
  p.alpha = coefficient_of(product.alpha, plan.dtype);
  p.beta = coefficient_of(product.beta, plan.dtype);
  return plan;
}

jit::TextKernel tile_product_kernel(const TileProductPlan& plan) {
  const Kernel& kernel = plan.kernel;
  const auto threads = static_cast<int>(kernel.threads);
  if (kernel.type == KernelType::kSimple) {
    return {"gemm simple", "cuop/ops/matmul/simple_product.cuh", "TileProduct",
            jit::instance("multiply_simply", plan.dtype, kernel.tile, kernel.threads,
                          kernel.in_shared, kernel.is_coalesced, plan.conjugate_a),
            threads};
  }
  const bool is_on_units = kernel.type == KernelType::kTensorCore;
  const auto item = static_cast<int>(itemsize(plan.dtype)), tile = static_cast<int>(kernel.tile);
  const int stage = jit::panel_bytes(item, tile, plan.a.is_along_depth) +
                    jit::panel_bytes(item, tile, plan.b.is_along_depth);
  return {
      is_on_units ? "gemm tensor_core" : "gemm tiled",
      is_on_units ? "cuop/ops/matmul/unit_tile.cuh" : "cuop/ops/matmul/thread_tile.cuh",
      "TileProduct",
      jit::instance("multiply_tiles", is_on_units ? "UnitTile" : "ThreadTile",
                    kernel.is_bulk ? "RowLoads" : "ThreadLoads", plan.dtype, kernel.tile,
                    kernel.threads, kernel.stages, text(plan.a), text(plan.b), plan.conjugate_a),
      threads,
      1,
      stage * static_cast<int>(kernel.stages)};
}

const char* unit_precision(DType dtype) {
  return dtype == DType::kFloat32 ? "tf32x3" : name(dtype);
}

void tile_product_cuda(Product& product, const Kernel& asked) {
  const Kernel kernel = completed_product(asked);
  const DType dtype = product.c.dtype();
  const Device device = product.c.device();
  const std::string obstacle =
      product_obstacle(kernel, dtype, backend::runtime(device).kernel_limits(),
                       backend::execution_options().build.max_registers);
  if (!obstacle.empty()) throw CompilationError(cat("matmul: ", obstacle));
  if (kernel.is_bulk) {
    if (!has_aligned_rows(product.a, steps_of_a(product.a))) {
      product.a = with_aligned_rows(product.a);
    }
    if (!has_aligned_rows(product.b, steps_of_b(product.b))) {
      product.b = with_aligned_rows(product.b);
    }
  }
  const TileProductPlan plan = plan_tile_product(product, kernel);
  jit::launch_text(tile_product_kernel(plan), device, plan.arguments.tiles, &plan.arguments);
  if (kernel.type == KernelType::kTensorCore) backend::note_matrix_units(unit_precision(dtype));
}

}  // namespace cuop::kernels
