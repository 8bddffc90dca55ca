#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/sort/search_kernels.h"
#include "cuop/ops/sort/sort_keys_internal.h"

namespace cuop::kernels {

namespace {

/// Searches that are worth a thread's start.
constexpr int64_t kSearchGrain = 1 << 10;

}  // namespace

void search_sorted_cpu(const Tensor& sorted, const Tensor& values, bool is_right,
                       const Tensor& places) {
  const jit::SortedSearch a = search_arguments(sorted, values, is_right, places);
  visit_dtype(RealTypes{}, sorted.dtype(), "searchsorted", [&]<class T>(TypeTag<T>) {
    const T* elements = sorted.data<T>();
    const T* wanted = values.data<T>();
    const auto key_at = [=](int64_t i) { return encode<true>(elements[i]); };
    backend::parallel_for_each(a.count, kSearchGrain, [&](int64_t i) {
      a.places[i] = jit::place_of(encode<true>(wanted[i]), a.length, a.is_right, key_at);
    });
  });
}

}  // namespace cuop::kernels
