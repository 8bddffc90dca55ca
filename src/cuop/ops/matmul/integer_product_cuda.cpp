// Products of integers on a GPU by a kernel of our own: the libraries have none that wraps.
#include "cuop/core/text.h"
#include "cuop/ops/matmul/integer_product_cuda_internal.h"
#include "cuop/ops/matmul/product_arguments_internal.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256, kSide = 16;  // kProductThreads, kProductSide of integer_product.cuh
constexpr int kOwn = 4, kManyOwn = 8;
/// Large tiles pay where they are as many as a device has multiprocessors.
constexpr int64_t kBusyTiles = 128;

/// A coefficient as the kernel takes it.
uint64_t bits_of(const Scalar& value, DType dtype) {
  if (is_bool(dtype)) return value.to_double() != 0 ? 1 : 0;
  return static_cast<uint64_t>(value.to_int64());
}

}  // namespace

IntegerProductPlan plan_integer_product(const Product& product, bool is_symmetric) {
  const DType dtype = product.c.dtype();
  IntegerProductPlan plan;
  plan.is_symmetric = is_symmetric;
  jit::IntegerProduct& p = plan.arguments;
  describe_matrices(p, product);
  p.alpha = bits_of(product.alpha, dtype);
  p.beta = bits_of(product.beta, dtype);
  // A thread's sums stay in registers: 64 of 32 bits, 16 of 64 bits.
  plan.own = itemsize(dtype) == 8 ? kOwn : kManyOwn;
  count_tiles(p, int64_t{plan.own} * kSide);
  if (p.tiles < kBusyTiles && plan.own != kOwn) {
    plan.own = kOwn;
    count_tiles(p, int64_t{plan.own} * kSide);
  }
  return plan;
}

jit::TextKernel integer_product_kernel(DType dtype, int own, bool is_symmetric) {
  return {is_symmetric ? "symm" : "matmul", "cuop/ops/matmul/integer_product.cuh", "IntegerProduct",
          cat("multiply_integers<", jit::text_type(dtype), ", ", own,
              is_symmetric ? ", true>" : ", false>"),
          kThreads};
}

void integer_product_cuda(const Product& product, bool is_symmetric) {
  const IntegerProductPlan plan = plan_integer_product(product, is_symmetric);
  jit::launch_text(integer_product_kernel(product.c.dtype(), plan.own, is_symmetric),
                   product.c.device(), plan.arguments.tiles, &plan.arguments);
}

}  // namespace cuop::kernels
