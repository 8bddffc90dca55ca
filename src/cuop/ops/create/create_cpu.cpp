#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/create/create_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 16;

/// Element i is element(TypeTag<T>, i) of T.
template <class Element>
void generate(const Tensor& out, Element element) {
  visit_dtype(AllTypes{}, out.dtype(), "fill", [&]<class T>(TypeTag<T>) {
    T* const data = out.data<T>();
    backend::parallel_for_each(out.size(), kGrain,
                               [&](int64_t i) { data[i] = element(TypeTag<T>(), i); });
  });
}

}  // namespace

void fill_whole_cpu(const Tensor& out, const jit::WholeSequence& s) {
  const auto element = [s]<class T>(TypeTag<T>, int64_t i) {
    return convert<T>(static_cast<int64_t>(s.bits(i)));
  };
  if (s.large_begin == s.large_end) return generate(out, element);  // the usual and quick case
  generate(out, [s, element]<class T>(TypeTag<T> tag, int64_t i) {
    return s.is_large(i) ? convert<T>(s.bits(i)) : element(tag, i);
  });
}

void fill_real_cpu(const Tensor& out, const jit::RealSequence& s) {
  generate(out, [s]<class T>(TypeTag<T>, int64_t i) { return convert<T>(s.value(i)); });
}

void fill_powers_cpu(const Tensor& out, const jit::PowerSequence& s) {
  generate(out, [s]<class T>(TypeTag<T>, int64_t i) { return convert<T>(s.value(i)); });
}

}  // namespace cuop::kernels
