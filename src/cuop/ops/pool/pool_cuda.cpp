#include <algorithm>
#include <limits>

#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/pool/pool_arguments.cuh"
#include "cuop/ops/pool/pool_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kMaxWrittenOut = 49;  // elements of a window

/// Whole planes are reductions of rows.
void global_pool(const Pooling& p, const Tensor& x, const Tensor& y) {
  const Shape shape{p.planes, Pooling::volume(p.in)};
  const Tensor rows = reshape(x, shape), result = reshape(y, {p.planes});
  jit::TensorExpr expr;
  expr.reduce(p.is_max ? ReduceKind::kMax : ReduceKind::kMean, expr.leaf(rows), shape, 1, result);
}

/// Whether indices of 32 bits do not reach everywhere.
bool is_wide(const Pooling& p) {
  int64_t largest = p.planes * std::max(Pooling::volume(p.in), Pooling::volume(p.out));
  for (size_t axis = 0; axis < 3; ++axis) {
    largest = std::max(largest, p.in[axis] + 2 * p.padding[axis] + p.kernel[axis] + p.stride[axis]);
  }
  return largest > std::numeric_limits<int32_t>::max();
}

}  // namespace

PoolForm pool_form(const Pooling& p, const Tensor& x) {
  PoolForm form{.is_max = p.is_max, .is_wide = is_wide(p)};
  for (size_t axis = 0; axis < 2 && p.in[axis] == 1 && p.out[axis] == 1; ++axis) --form.axes;
  // A window's loops are written out where it is small.
  if (p.kernel[1] * p.kernel[2] <= kMaxWrittenOut) {
    form.height = static_cast<int>(p.kernel[1]);
    form.width = static_cast<int>(p.kernel[2]);
  }
  const int64_t width = p.kernel[2], bytes = width * itemsize(x.dtype());
  form.is_packed = (width == 2 || width == 4) && form.width == width && p.stride[2] == width &&
                   p.padding[2] == 0 && p.in[2] % width == 0 &&
                   reinterpret_cast<uintptr_t>(x.data()) %
                           static_cast<uintptr_t>(std::min<int64_t>(bytes, 16)) ==
                       0;
  return form;
}

jit::TextKernel pool_kernel(DType dtype, const PoolForm& form) {
  return {form.is_max ? "max_pool" : "avg_pool", "cuop/ops/pool/pool.cuh", "PoolArguments",
          jit::instance("pool_windows", dtype, form.is_max, form.is_wide ? "int64_t" : "int32_t",
                        form.axes, form.height, form.width, form.is_packed),
          jit::kPoolThreads};
}

void pool_cuda(const Pooling& p, const Tensor& x, const Tensor& y) {
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
  const PoolForm form = pool_form(p, x);
  for (size_t axis = 0; axis < 3 && !form.is_wide; ++axis) {
    a.by_out[axis] = jit::make_divisor(static_cast<uint32_t>(p.out[axis]));
  }
  jit::launch_text(pool_kernel(x.dtype(), form), x.device(), divide_up(a.count, jit::kPoolThreads),
                   &a);
}

}  // namespace cuop::kernels
