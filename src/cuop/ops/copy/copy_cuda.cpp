#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy_kernels.h"

namespace cuop::kernels {

void strided_copy_cuda(const Tensor& dst, const Tensor& src) {
  if (dst.dtype() != src.dtype() || !dst.is_contiguous() || !src.is_contiguous()) {
    throw NotImplementedError(cat("copy: no kernel on ", dst.device(), " from ", src.dtype(),
                                  " with strides ", src.strides(), " to ", dst.dtype(),
                                  " with strides ", dst.strides(),
                                  "; there is one for contiguous tensors of one dtype"));
  }
  backend::runtime(dst.device())
      .copy(dst.data(), src.data(), src.nbytes(), current_stream(dst.device()));
}

}  // namespace cuop::kernels
