#include <algorithm>
#include <limits>

#include "cuop/core/text.h"
#include "cuop/jit/expr.h"
#include "cuop/jit/run.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/pool/pool_arguments.cuh"
#include "cuop/ops/pool/pool_cuda_internal.h"
#include "cuop/ops/pool/pool_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256;  // kPoolThreads of pool.cuh

/// Whole planes are reductions of rows.
void global_pool(const Pool& p, const Tensor& x, const Tensor& y) {
  const Shape shape{p.planes, Pool::volume(p.in)};
  const Tensor rows = reshape(x, shape), result = reshape(y, {p.planes});
  const Tensor* leaf = &rows;
  const Tensor* output = &result;
  jit::Expr expr;
  const auto kind = p.is_max ? jit::ReduceKind::kMax : jit::ReduceKind::kMean;
  expr.add_output(expr.add_reduce(kind, expr.add_leaf(x.dtype())));
  jit::run(expr, {shape, 1, {&leaf, 1}, {}, {&output, 1}});
}

bool is_wide(const jit::PoolArguments& a, int64_t elements) {
  int64_t largest = std::max(a.count, elements);
  for (int axis = 0; axis < 3; ++axis) {
    largest = std::max(largest, a.in[axis] + 2 * a.padding[axis] + a.kernel[axis] + a.stride[axis]);
  }
  return largest > std::numeric_limits<int32_t>::max();
}

}  // namespace

jit::TextKernel pool_kernel(DType dtype, bool is_max, bool is_wide) {
  return {is_max ? "max_pool" : "avg_pool", "cuop/ops/pool/pool.cuh", "PoolArguments",
          cat("pool_windows<", jit::text_type(dtype), is_max ? ", true, " : ", false, ",
              is_wide ? "int64_t>" : "int32_t>"),
          kThreads};
}

void pool_cuda(const Pool& p, const Tensor& x, const Tensor& y) {
  if (p.is_global()) return global_pool(p, x, y);
  jit::PoolArguments a{};
  a.x = x.data();
  a.y = y.data();
  a.count = y.size();
  std::copy_n(p.in.begin(), 3, a.in);
  std::copy_n(p.out.begin(), 3, a.out);
  std::copy_n(p.kernel.begin(), 3, a.kernel);
  std::copy_n(p.stride.begin(), 3, a.stride);
  std::copy_n(p.padding.begin(), 3, a.padding);
  a.count_include_pad = p.count_include_pad ? 1 : 0;
  jit::launch_text(pool_kernel(x.dtype(), p.is_max, is_wide(a, x.size())), x.device(),
                   (a.count + kThreads - 1) / kThreads, &a);
}

}  // namespace cuop::kernels
