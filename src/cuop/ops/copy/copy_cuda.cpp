#include "cuop/backend/runtime.h"
#include "cuop/jit/expr.h"
#include "cuop/jit/run.h"
#include "cuop/ops/copy/copy_cuda_internal.h"
#include "cuop/ops/copy/copy_kernels.h"

namespace cuop::kernels {

void strided_copy_cuda(const Tensor& dst, const Tensor& src) {
  if (dst.dtype() == src.dtype() && dst.is_contiguous() && src.is_contiguous()) {
    return backend::runtime(dst.device())
        .copy(dst.data(), src.data(), src.nbytes(), current_stream(dst.device()));
  }
  if (dst.dtype() == src.dtype()) {
    if (const auto copy = plan_transposed_copy(dst, src)) {
      return jit::launch_text(transposed_copy_kernel(itemsize(dst.dtype())), dst.device(),
                              copy->tiles, &*copy);
    }
  }
  jit::Expr expr;
  const int value = expr.add_leaf(src.dtype());
  expr.add_output(expr.add_cast(value, dst.dtype()));
  const Tensor* leaf = &src;
  const Tensor* output = &dst;
  jit::run(expr, {dst.shape(), 0, {&leaf, 1}, {}, {&output, 1}});
}

}  // namespace cuop::kernels
