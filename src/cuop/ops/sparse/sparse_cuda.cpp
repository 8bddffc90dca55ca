// Layouts of sparse matrices by kernels of our own and tensor operations, products by cuSPARSE.
#include "cuop/backend/cuda/cusparse.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/sparse/sparse_arguments.cuh"
#include "cuop/ops/sparse/sparse_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256;

Tensor search_rows(const Tensor& sorted, int64_t count, RowSearchKind search) {
  const Tensor result = empty({count}, sorted.dtype(), sorted.device());
  if (count == 0) return result;
  const jit::RowSearch arguments{sorted.data(), result.data(), sorted.size(), count,
                                 search == RowSearchKind::kNumbers ? 1 : 0};
  jit::launch_text(row_search_kernel(sorted.dtype(), search), sorted.device(),
                   divide_up(count, int64_t{kThreads}), &arguments);
  return result;
}

}  // namespace

jit::TextKernel row_search_kernel(DType index_dtype, RowSearchKind search) {
  return {search == RowSearchKind::kNumbers ? "sparse row numbers" : "sparse row positions",
          "cuop/ops/sparse/sparse.cuh", "RowSearch", jit::instance("search_rows", index_dtype),
          kThreads};
}

Tensor row_numbers_cuda(const Tensor& positions, int64_t count) {
  return search_rows(positions, count, RowSearchKind::kNumbers);
}

Tensor row_positions_cuda(const Tensor& row_numbers, int64_t rows) {
  return search_rows(row_numbers, rows + 1, RowSearchKind::kPositions);
}

SparseMatrix compress_cuda(const Tensor& x, DType index_dtype) {
  const Tensor mask = not_equal(x, 0);
  const std::vector<Tensor> places = nonzero(mask);
  const Tensor rows = cast(places[0], index_dtype);
  return SparseMatrix::trusted(SparseLayout::kCsr, x.shape(), row_positions_cuda(rows, x.shape(0)),
                               cast(places[1], index_dtype), masked_select(x, mask));
}

void expand_cuda(const SparseMatrix& csr, const Tensor& zeros) {
  const Tensor rows = cast(row_numbers_cuda(csr.rows(), csr.nonzeros()), DType::kInt64);
  const Tensor places = add(multiply(rows, csr.shape()[1]), cast(csr.columns(), DType::kInt64));
  put_along_axis(reshape(zeros, {zeros.size()}), places, csr.values(), 0);
}

void sparse_product_cuda(const SparseMatrix& a, const Tensor& b, const Tensor& c) {
  backend::cuda::SparseProduct product;
  product.is_double = c.dtype() == DType::kFloat64;
  product.has_wide_indices = a.index_dtype() == DType::kInt64;
  product.m = c.shape(0);
  product.n = c.shape(1);
  product.k = b.shape(0);
  product.nonzeros = a.nonzeros();
  product.positions = a.rows().data();
  product.columns = a.columns().data();
  product.values = a.values().data();
  product.b = b.data();
  product.c = c.data();
  // Rows are at least as far apart as they are long; of a single row nobody asks.
  const Tensor right = b.strides()[0] >= product.n || product.k == 1 ? b : clone(b);
  product.b = right.data();
  product.b_stride = product.k == 1 ? product.n : right.strides()[0];
  const bool is_in_place = c.strides()[0] >= product.n || product.m == 1;
  const Tensor made = is_in_place ? c : empty(c.shape(), c.dtype(), c.device());
  product.c = made.data();
  product.c_stride = product.m == 1 ? product.n : made.strides()[0];
  backend::cuda::sparse_product("matmul", product, current_stream(c.device()));
  if (!is_in_place) copy_into(c, made);
}

}  // namespace cuop::kernels
