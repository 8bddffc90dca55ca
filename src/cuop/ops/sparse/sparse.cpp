#include "cuop/ops/sparse/sparse.h"

#include <limits>

#include "cuop/backend/slot.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/sparse/sparse_kernels.h"

namespace cuop {

namespace {

constexpr backend::Slot kCompress{"to_sparse", &kernels::compress_cpu, &kernels::compress_cuda};
constexpr backend::Slot kExpand{"to_dense", &kernels::expand_cpu, &kernels::expand_cuda};
constexpr backend::Slot kRowNumbers{"sparse", &kernels::row_numbers_cpu,
                                    &kernels::row_numbers_cuda};
constexpr backend::Slot kRowPositions{"sparse", &kernels::row_positions_cpu,
                                      &kernels::row_positions_cuda};
constexpr backend::Slot kProduct{"matmul", &kernels::sparse_product_cpu,
                                 &kernels::sparse_product_cuda};

}  // namespace

SparseMatrix to_sparse(const Tensor& x, SparseLayout layout) {
  const trace::Span span("to_sparse", "op");
  check_sparse_shape("to_sparse", x.shape());
  check_sparse_values("to_sparse", x.dtype());
  const bool is_short = x.size() <= std::numeric_limits<int32_t>::max();
  const DType index = is_short ? DType::kInt32 : DType::kInt64;
  return in_layout(kCompress(x.device(), x, index), layout);
}

Tensor to_dense(const SparseMatrix& x) {
  const trace::Span span("to_dense", "op");
  const Tensor result = zeros(x.shape(), x.dtype(), x.device());
  if (x.nonzeros() > 0) kExpand(x.device(), in_layout(x, SparseLayout::kCsr), result);
  return result;
}

SparseMatrix in_layout(const SparseMatrix& x, SparseLayout layout) {
  if (x.layout() == layout) return x;
  const Tensor rows = layout == SparseLayout::kCoo
                          ? kRowNumbers(x.device(), x.rows(), x.nonzeros())
                          : kRowPositions(x.device(), x.rows(), x.shape()[0]);
  return SparseMatrix::trusted(layout, x.shape(), rows, x.columns(), x.values());
}

SparseMatrix to_device(const SparseMatrix& x, Device device) {
  return SparseMatrix::trusted(x.layout(), x.shape(), to_device(x.rows(), device),
                               to_device(x.columns(), device), to_device(x.values(), device));
}

Tensor matmul(const SparseMatrix& a, const Tensor& b, const Tensor* out) {
  const trace::Span span("matmul", "op");
  const bool is_vector = b.ndim() == 1;
  if ((!is_vector && b.ndim() != 2) || b.shape(0) != a.shape()[1]) {
    throw ShapeError(cat("matmul: a sparse matrix ", a.shape(), " and ", b.shape(),
                         " do not fit; needed are (M, K) and (K, N) or (K,)"));
  }
  const Device device = common_device("matmul", {&a.values(), &b});
  const DType dtype = promote(a.dtype(), b.dtype());
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    throw DTypeError(cat("matmul: a sparse matrix of ", a.dtype(), " and ", b.dtype(),
                         "; needed are two that promote to float32 or float64"));
  }
  Shape shape{a.shape()[0]};
  if (!is_vector) shape.push_back(b.shape(1));
  const Tensor result = prepare_output("matmul", out, shape, dtype, device);
  check_no_overlap("matmul", result, b, "b");
  check_no_overlap("matmul", result, a.values(), "a");
  if (result.size() == 0) return result;
  if (a.nonzeros() == 0) {
    fill(result, 0);
    return result;
  }
  const SparseMatrix csr = in_layout(a, SparseLayout::kCsr);
  const SparseMatrix left = SparseMatrix::trusted(csr.layout(), csr.shape(), csr.rows(),
                                                  csr.columns(), cast(csr.values(), dtype));
  const auto as_matrix = [&](const Tensor& x) { return is_vector ? unsqueeze(x, 1) : x; };
  const auto is_in_rows = [](const Tensor& x) { return x.shape(1) == 1 || x.strides()[1] == 1; };
  Tensor right = as_matrix(cast(b, dtype));
  if (!is_in_rows(right)) right = contiguous(right);
  const Tensor view = as_matrix(result);
  const Tensor made = is_in_rows(view) ? view : empty(view.shape(), dtype, device);
  kProduct(device, left, right, made);
  if (!is_in_rows(view)) copy_into(view, made);
  return result;
}

}  // namespace cuop
