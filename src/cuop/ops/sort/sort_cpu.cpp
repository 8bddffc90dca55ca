#include <tuple>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/sort/radix_internal.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 13;

template <class Key>
struct Position {
  Key key;
  int64_t index;
};

/// Calls body(in offset, out offset) for all lines of a range, in parallel over ranges; `make`
/// makes what a range needs.
template <class Make>
void for_lines(const Tensor& x, int axis, const Tensor& out, Make&& make) {
  Shape others = x.shape();
  Strides in = x.strides(), to = out.strides();
  others.erase(axis);
  in.erase(axis);
  to.erase(axis);
  const LoopNest<2> nest = make_loop_nest<2>(others, {&in, &to});
  backend::parallel_for(nest.size(), kGrain / x.shape(axis), [&](int64_t begin, int64_t end) {
    auto body = make();
    for (int64_t line = begin; line < end; ++line) std::apply(body, nest.offsets(line));
  });
}

}  // namespace

void sort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  visit_dtype(RealTypes{}, x.dtype(), "sort", [&]<class T>(TypeTag<T>) {
    using Key = KeyOf<T>;
    const T* source = x.data<T>();
    T* target = out.data<T>();
    const int64_t in_step = x.strides()[axis], out_step = out.strides()[axis];
    const auto count = static_cast<size_t>(x.shape(axis));
    for_lines(x, axis, out, [&] {
      return [&, keys = std::vector<Key>(count), spare = std::vector<Key>(count)](
                 int64_t in, int64_t to) mutable {
        for (size_t i = 0; i < count; ++i) {
          keys[i] = encode<false>(source[in + static_cast<int64_t>(i) * in_step]);
        }
        radix_sort(keys, spare, [](Key key) { return key; });
        for (size_t i = 0; i < count; ++i) {
          const Key key = keys[is_descending ? count - 1 - i : i];
          target[to + static_cast<int64_t>(i) * out_step] = decode<T>(key);
        }
      };
    });
  });
}

void argsort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  visit_dtype(RealTypes{}, x.dtype(), "argsort", [&]<class T>(TypeTag<T>) {
    using Key = KeyOf<T>;
    using Record = Position<Key>;
    const T* source = x.data<T>();
    auto* target = out.data<int64_t>();
    const int64_t in_step = x.strides()[axis], out_step = out.strides()[axis];
    const auto count = static_cast<size_t>(x.shape(axis));
    // Falling order by inverted keys, so that equal elements keep their order there too.
    const Key flip = is_descending ? static_cast<Key>(~Key{0}) : Key{0};
    for_lines(x, axis, out, [&] {
      return [&, flip, records = std::vector<Record>(count), spare = std::vector<Record>(count)](
                 int64_t in, int64_t to) mutable {
        for (size_t i = 0; i < count; ++i) {
          const auto index = static_cast<int64_t>(i);
          const Key key = encode<true>(source[in + index * in_step]);
          records[i] = {static_cast<Key>(key ^ flip), index};
        }
        radix_sort(records, spare, [](const Record& record) { return record.key; });
        for (size_t i = 0; i < count; ++i) {
          target[to + static_cast<int64_t>(i) * out_step] = records[i].index;
        }
      };
    });
  });
}

void mark_runs_cpu(const Tensor& x, const Tensor& order, const Tensor& starts) {
  visit_dtype(RealTypes{}, x.dtype(), "unique", [&]<class T>(TypeTag<T>) {
    const T* values = x.data<T>();
    const auto* positions = order.data<int64_t>();
    auto* marks = starts.data<bool>();
    backend::parallel_for_each(x.size(), kGrain, [&](int64_t i) {
      marks[i] =
          i == 0 || encode<true>(values[positions[i]]) != encode<true>(values[positions[i - 1]]);
    });
  });
}

}  // namespace cuop::kernels
