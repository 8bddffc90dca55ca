#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/convert.h"
#include "cuop/ops/create/create_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 16;

/// Holds what int64 and uint64 hold.
__extension__ typedef __int128 Wide;

template <class Value>
void generate(const Tensor& out, Value value) {
  visit_dtype(AllTypes{}, out.dtype(), "fill", [&]<class T>(TypeTag<T>) {
    T* const data = out.data<T>();
    backend::parallel_for(out.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = convert<T>(value(i));
    });
  });
}

}  // namespace

void fill_whole_cpu(const Tensor& out, const jit::WholeSequence& s) {
  if (s.large_begin == s.large_end) {  // the usual case is the quick one
    return generate(out, [s](int64_t i) { return static_cast<int64_t>(s.bits(i)); });
  }
  generate(out, [s](int64_t i) {
    return s.is_large(i) ? Wide{s.bits(i)} : Wide{static_cast<int64_t>(s.bits(i))};
  });
}

void fill_real_cpu(const Tensor& out, const jit::RealSequence& s) {
  generate(out, [s](int64_t i) { return s.value(i); });
}

void fill_powers_cpu(const Tensor& out, const jit::PowerSequence& s) {
  generate(out, [s](int64_t i) { return s.value(i); });
}

}  // namespace cuop::kernels
