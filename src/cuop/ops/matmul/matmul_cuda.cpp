// Products on a GPU: by cuBLASLt, or by kernels of our own where the caller asks for them or a
// vector meets short rows; those of integers and bool by kernels of our own alone.
#include "cuop/backend/cuda/cublaslt.h"
#include "cuop/backend/execution.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/arranged_product_internal.h"
#include "cuop/ops/matmul/gemm_choice_cuda.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/padded_product_internal.h"
#include "cuop/ops/matmul/product_arguments_internal.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop::kernels {

namespace {

constexpr const char* kName = "matmul";

const void* at(const Tensor& t, int64_t elements) {
  return static_cast<const std::byte*>(t.data()) + elements * itemsize(t.dtype());
}

/// Whether the product was one of a matrix and a vector, and is done.
bool try_matrix_vector(const Product& p, VectorRows rows) {
  const int r = p.c.ndim() - 2;
  if (p.c.shape(r + 1) == 1 && matrix_vector_cuda(p, rows)) return true;
  if (p.c.shape(r) != 1 || p.conjugate_a) return false;
  const auto turned = [](const Tensor& t) { return swap_axes(t, -1, -2); };
  return matrix_vector_cuda({turned(p.b), turned(p.a), turned(p.c), p.alpha, p.beta}, rows);
}

constexpr int kOwn = 4, kManyOwn = 8;
/// Large tiles pay where they are as many as a device has multiprocessors.
constexpr int64_t kBusyTiles = 128;

/// A coefficient as the kernel takes it.
uint64_t bits_of(const Scalar& value, DType dtype) {
  if (is_bool(dtype)) return value.to_double() != 0 ? 1 : 0;
  return value.to_bits64();
}

}  // namespace

void matmul_cuda(Product& p) {
  const DType dtype = p.a.dtype();
  if (!backend::cuda::has_gemm(dtype)) {  // of integers and bool, in tiles of rows and columns
    if (!try_matrix_vector(p, VectorRows::kAny)) integer_product_cuda(p);
    return;
  }
  if (const backend::Kernel& kernel = backend::execution_options().kernel; kernel.tile != 0) {
    if (p.is_widening()) {  // which these kernels are not
      p.a = cast(p.a, p.c.dtype());
      p.b = cast(p.b, p.c.dtype());
    }
    merge_batch(p);
    return tile_product_cuda(p, kernel);
  }
  merge_batch(p);
  if (!p.is_widening() && try_matrix_vector(p, VectorRows::kShort)) return;
  if (try_split_product(p)) return;
  ArrangedProduct arranged = arrange(p);
  pad_rows(arranged, p);
  const int r = p.c.ndim() - 2;
  backend::cuda::GemmShape shape;
  shape.dtype = dtype;
  shape.result = p.c.dtype();
  shape.trans_a = p.conjugate_a ? Trans::kConjTrans : arranged.a.trans;
  shape.trans_b = arranged.b.trans;
  shape.m = p.c.shape(r);
  shape.n = p.c.shape(r + 1);
  shape.k = p.a.shape(r + 1);
  shape.lda = arranged.a.ld;
  shape.ldb = arranged.b.ld;
  shape.ldc = arranged.ldc;
  // One call serves the longest batch axis that all three walk with one stride.
  const auto nest = batch_nest(p);
  shape.batch = nest.inner().size;
  shape.stride_c = nest.inner().strides[0];
  shape.stride_a = nest.inner().strides[1];
  shape.stride_b = nest.inner().strides[2];
  const Stream stream = current_stream(p.c.device());
  for (int64_t outer = 0; outer < nest.outer_size(); ++outer) {
    const auto offsets = nest.row_offsets(outer);
    tuned_gemm(kName, shape, p.alpha, at(p.a, offsets[1]), at(p.b, offsets[2]), p.beta,
               const_cast<void*>(at(p.c, offsets[0])), stream);
  }
  finish(arranged, p);
}

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
  count_tiles(p, int64_t{plan.own} * jit::kProductSide);
  if (p.tiles < kBusyTiles && plan.own != kOwn) {
    plan.own = kOwn;
    count_tiles(p, int64_t{plan.own} * jit::kProductSide);
  }
  return plan;
}

jit::TextKernel integer_product_kernel(DType dtype, int own, bool is_symmetric) {
  return {is_symmetric ? "symm" : "matmul", "cuop/ops/matmul/integer_product.cuh", "IntegerProduct",
          jit::instance("multiply_integers", dtype, own, is_symmetric), jit::kProductThreads};
}

void integer_product_cuda(const Product& product, bool is_symmetric) {
  const IntegerProductPlan plan = plan_integer_product(product, is_symmetric);
  jit::launch_text(integer_product_kernel(product.c.dtype(), plan.own, is_symmetric),
                   product.c.device(), plan.arguments.tiles, &plan.arguments);
}

}  // namespace cuop::kernels
