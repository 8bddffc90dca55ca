#include "cuop/ops/matmul/product_bytes.h"

#include <algorithm>

#include "cuop/backend/cuda/cublaslt.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/padded_product_internal.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop {
namespace {

/// The largest value(m, n, batch) of the ways in which a stack may be taken: for one call, for a
/// call a matrix or for one tall product.
template <class Value>
auto most_of_ways(const ProductExtents& e, const Value& value) {
  if (e.batch == 1) return value(e.m, e.n, e.batch);
  return std::max({value(e.m, e.n, e.batch), value(e.m, e.n, int64_t{1}),
                   value(e.m * e.batch, e.n, int64_t{1}), value(e.m, e.n * e.batch, int64_t{1})});
}

int64_t split_bytes(const ProductExtents& e, const WorkFigures& figures) {
  const auto pays = [&](int64_t m, int64_t n, int64_t batch) {
    return kernels::split_columns(m, n, e.k, batch, figures.multiprocessors) != 0;
  };
  if (!figures.splits_products || !figures.spare.has_copies || !most_of_ways(e, pays)) return 0;
  return kernels::parts_bytes(e.m, e.k, e.is_one_a ? 1 : e.batch) +
         kernels::parts_bytes(e.n, e.k, e.is_one_b ? 1 : e.batch);
}

int64_t padded_bytes(const ProductExtents& e, DType dtype, DType result,
                     const WorkFigures& figures) {
  constexpr int64_t kStep = kernels::kPaddedStep;
  const bool has_whole_rows = e.m % kStep == 0 && e.n % kStep == 0 && e.k % kStep == 0;
  if (has_whole_rows || !figures.spare.has_copies) return 0;
  const auto pays = [&](int64_t m, int64_t n, int64_t batch) {
    return kernels::pays_padding(m, n, e.k, batch);
  };
  if (!most_of_ways(e, pays)) return 0;
  // Which side of a product is padded depends on how it is turned.
  const int64_t m = round_up(e.m, kStep), n = round_up(e.n, kStep), k = round_up(e.k, kStep);
  const int64_t of_a = m * k * (e.is_one_a ? 1 : e.batch);
  const int64_t of_b = k * n * (e.is_one_b ? 1 : e.batch);
  return (of_a + of_b) * itemsize(dtype) + e.batch * m * n * itemsize(result);
}

}  // namespace

int64_t product_bytes(const ProductExtents& e, DType dtype, DType result,
                      const WorkFigures& figures) {
  if (!figures.is_gpu() || e.m <= 0 || e.n <= 0 || e.k <= 0 || e.batch <= 0) return 0;
  if (!backend::cuda::has_gemm(dtype)) {
    if (e.m > 1 && e.n > 1) return 0;
    const int64_t rows = e.batch * std::max(e.m, e.n);
    return jit::most_partial_bytes(rows, e.k, kernels::kVectorStateBytes, figures.multiprocessors);
  }
  const int64_t workspace =
      std::min(backend::cuda::kGemmWorkspace,
               figures.spare.workspace.value_or(backend::cuda::kGemmWorkspace));
  if (dtype == DType::kFloat32) return std::max(split_bytes(e, figures), workspace);
  const bool is_short = itemsize(dtype) == 2;
  return workspace + (is_short ? padded_bytes(e, dtype, result, figures) : 0);
}

double product_pace(const ProductExtents& e, DType dtype, const WorkFigures& figures) {
  if (dtype != DType::kFloat32 || !figures.is_gpu() || !figures.splits_products) return 1;
  const double library = kernels::library_pace(figures.multiprocessors);
  if (!figures.spare.has_copies) return library;
  const double by_parts = most_of_ways(e, [&](int64_t m, int64_t n, int64_t batch) {
    return kernels::split_pace(m, n, e.k, batch, figures.multiprocessors);
  });
  return by_parts > 0 ? by_parts : library;
}

}  // namespace cuop
