#include <memory>
#include <span>
#include <tuple>

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

/// The memory that a line is sorted in. Nothing writes it beforehand, which for a long line would
/// take long, and nobody could interrupt it.
template <class Record>
class Line {
 public:
  explicit Line(size_t count)
      : count_(count), records_(std::make_unique_for_overwrite<Record[]>(2 * count)) {}

  std::span<Record> records() const { return {records_.get(), count_}; }
  std::span<Record> spare() const { return {records_.get() + count_, count_}; }

 private:
  size_t count_;
  std::unique_ptr<Record[]> records_;
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
      return [&, line = Line<Key>(count)](int64_t in, int64_t to) {
        const std::span<Key> keys = line.records();
        for_each_interruptibly(count, [=, from = source + in, step = in_step](size_t i) {
          keys[i] = encode<false>(from[static_cast<int64_t>(i) * step]);
        });
        const std::span<Key> sorted = radix_sort(keys, line.spare(), [](Key key) { return key; });
        const auto put = [=, result = target + to, step = out_step, last = count - 1,
                          turns = is_descending](size_t i) {
          result[static_cast<int64_t>(i) * step] = decode<T>(sorted[turns ? last - i : i]);
        };
        for_each_interruptibly(count, put);
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
      return [&, flip, line = Line<Record>(count)](int64_t in, int64_t to) {
        const std::span<Record> records = line.records();
        const auto take = [=, from = source + in, step = in_step, turn = flip](size_t i) {
          const auto index = static_cast<int64_t>(i);
          const Key key = encode<true>(from[index * step]);
          records[i] = {static_cast<Key>(key ^ turn), index};
        };
        for_each_interruptibly(count, take);
        const std::span<Record> sorted =
            radix_sort(records, line.spare(), [](const Record& record) { return record.key; });
        for_each_interruptibly(count, [=, result = target + to, step = out_step](size_t i) {
          result[static_cast<int64_t>(i) * step] = sorted[i].index;
        });
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
