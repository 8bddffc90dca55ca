// Products of integers on a GPU by a kernel of our own: the libraries have none that wraps.
#include "cuop/core/text.h"
#include "cuop/ops/matmul/integer_product_cuda_internal.h"
#include "cuop/ops/places_internal.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256, kSide = 16;  // kProductThreads, kProductSide of integer_product.cuh
constexpr int kOwn = 4, kManyOwn = 8;
/// Large tiles pay where they are as many as a device has multiprocessors.
constexpr int64_t kBusyTiles = 128;

Dims batch_part(const Dims& dims) {
  return Dims(std::span<const int64_t>(dims.begin(), static_cast<size_t>(dims.ndim() - 2)));
}

/// A coefficient as the kernel takes it.
uint64_t bits_of(const Scalar& value, DType dtype) {
  if (is_bool(dtype)) return value.to_double() != 0 ? 1 : 0;
  return static_cast<uint64_t>(value.to_int64());
}

void count_tiles(jit::IntegerProduct& p, int64_t batch, int own) {
  const int64_t tile = int64_t{own} * kSide;
  p.row_tiles = (p.rows + tile - 1) / tile;
  p.column_tiles = (p.columns + tile - 1) / tile;
  p.tiles = batch * p.row_tiles * p.column_tiles;
}

}  // namespace

IntegerProductPlan plan_integer_product(const Product& product, bool is_symmetric) {
  const Tensor &a = product.a, &b = product.b, &c = product.c;
  const int r = c.ndim() - 2;
  IntegerProductPlan plan;
  plan.is_symmetric = is_symmetric;
  jit::IntegerProduct& p = plan.arguments;
  p.a = a.data();
  p.b = b.data();
  p.c = c.data();
  p.rows = c.shape(r);
  p.columns = c.shape(r + 1);
  p.depth = a.shape(r + 1);
  p.a_row = a.strides()[r];
  p.a_column = a.strides()[r + 1];
  p.b_row = b.strides()[r];
  p.b_column = b.strides()[r + 1];
  p.c_row = c.strides()[r];
  p.c_column = c.strides()[r + 1];
  p.alpha = bits_of(product.alpha, c.dtype());
  p.beta = bits_of(product.beta, c.dtype());
  const Strides a_strides = batch_part(a.strides()), b_strides = batch_part(b.strides()),
                c_strides = batch_part(c.strides());
  const auto nest = make_loop_nest<3>(batch_part(c.shape()), {&c_strides, &a_strides, &b_strides});
  p.batch = places_of(nest);
  const int64_t batch = nest.outer_size() * nest.inner().size;
  // A thread's sums stay in registers: 64 of 32 bits, 16 of 64 bits.
  plan.own = itemsize(c.dtype()) == 8 ? kOwn : kManyOwn;
  count_tiles(p, batch, plan.own);
  if (p.tiles < kBusyTiles && plan.own != kOwn) {
    plan.own = kOwn;
    count_tiles(p, batch, plan.own);
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
