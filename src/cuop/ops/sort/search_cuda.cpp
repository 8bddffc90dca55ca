#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/sort/search_kernels.h"
#include "cuop/ops/sort/sort_kernels.h"

namespace cuop::kernels {

jit::TextKernel search_sorted_kernel(DType dtype) {
  return {"searchsorted", "cuop/ops/sort/search.cuh", "SortedSearch",
          jit::instance("search_sorted", key_text(dtype)), jit::kSearchThreads};
}

jit::SortedSearch search_arguments(const Tensor& sorted, const Tensor& values, bool is_right,
                                   const Tensor& places) {
  return {sorted.data(), values.data(), places.data<int64_t>(),
          sorted.size(), values.size(), infinity_of(sorted.dtype()),
          is_right};
}

void search_sorted_cuda(const Tensor& sorted, const Tensor& values, bool is_right,
                        const Tensor& places) {
  const jit::SortedSearch arguments = search_arguments(sorted, values, is_right, places);
  jit::launch_text(search_sorted_kernel(sorted.dtype()), sorted.device(),
                   divide_up(values.size(), jit::kSearchThreads), &arguments);
}

}  // namespace cuop::kernels
