#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/sort/quick_line_internal.h"
#include "cuop/ops/sort/radix_sort_internal.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "cuop/ops/sort/sort_keys_internal.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 13;

/// All lines along an axis, each with the offset of its first element in x and in out.
class Lines {
 public:
  Lines(const Tensor& x, int axis, const Tensor& out) : length_(x.shape(axis)) {
    Shape others = x.shape();
    Strides in = x.strides(), to = out.strides();
    others.erase(axis);
    in.erase(axis);
    to.erase(axis);
    nest_ = make_loop_nest<2>(others, {&in, &to});
    const int64_t threads = backend::thread_count();
    if (nest_.size() < threads) {
      parts_ = std::clamp<int64_t>(length_ / kSortedPart, 1, threads);
    }
  }

  /// make(parts) makes what sorts a line in so many parts: sorter(in offset, out offset). Threads
  /// share the lines, or all of them each line.
  template <class Make>
  void sort_each(Make&& make) const {
    const auto run = [&](int64_t begin, int64_t end) {
      auto sorter = make(static_cast<size_t>(parts_));
      for (int64_t line = begin; line < end; ++line) std::apply(sorter, nest_.offsets(line));
    };
    if (parts_ > 1) return run(0, nest_.size());
    backend::parallel_for(nest_.size(), kGrain / length_, run);
  }

 private:
  LoopNest<2> nest_;
  int64_t length_, parts_ = 1;
};

/// The axis along which elements of both lie side by side where lines lie across them; or none.
std::optional<int> axis_beside(const Tensor& x, int axis, const Tensor& out) {
  if (x.strides()[axis] == 1 || out.strides()[axis] == 1) return std::nullopt;
  for (int other = 0; other < x.ndim(); ++other) {
    const bool is_beside = x.strides()[other] == 1 && out.strides()[other] == 1;
    if (other != axis && is_beside && x.shape(other) > 1) return other;
  }
  return std::nullopt;
}

/// sort(x, axis, out). Lines that lie across the rows of memory are turned into rows and back, some
/// of them at a time: each access of such a line is to a cache line of its own.
template <class Sort>
void sort_in_rows(const Tensor& x, int axis, const Tensor& out, const Sort& sort) {
  constexpr int64_t kTurned = int64_t{16} << 10;  // elements at a time, of each thread
  constexpr int64_t kFewest = 16, kLeast = kTurned / 4, kMost = kTurned * 64;
  const int64_t length = x.shape(axis);
  const std::optional<int> beside = axis_beside(x, axis, out);
  const int64_t width = beside ? x.shape(*beside) : 0;
  const int64_t wanted = kTurned * backend::thread_count();
  const int64_t lines = std::min(width, std::max(kFewest, wanted / std::max<int64_t>(1, length)));
  const int64_t turned = lines * length;
  if (turned < kLeast || turned > std::max(kMost, wanted)) return sort(x, axis, out);
  Shape others = x.shape();
  Strides in = x.strides(), to = out.strides();
  for (const int gone : {std::max(axis, *beside), std::min(axis, *beside)}) {
    others.erase(gone);
    in.erase(gone);
    to.erase(gone);
  }
  const LoopNest<2> nest = make_loop_nest<2>(others, {&in, &to});
  const Tensor given = empty({lines, length}, x.dtype());
  const Tensor sorted = empty({lines, length}, out.dtype());
  for (int64_t i = 0; i < nest.size(); ++i) {
    const auto [from, into] = nest.offsets(i);
    for (int64_t line = 0; line < width; line += lines) {
      const int64_t count = std::min(lines, width - line);
      const auto lines_of = [&](const Tensor& t, int64_t offset) {
        return t.with_layout(
            {{count, length}, {1, t.strides()[axis]}, t.layout().offset + offset + line});
      };
      const auto rows_of = [&](const Tensor& t) {
        return t.with_layout(slice(t.layout(), 0, 0, count, 1));
      };
      copy_into(rows_of(given), lines_of(x, from));
      sort(rows_of(given), 1, rows_of(sorted));
      copy_into(lines_of(out, into), rows_of(sorted));
    }
  }
}

template <class T, class Index>
void sort_positions(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  using Key = KeyOf<T>;
  using Record = Position<Key, Index>;
  const auto count = static_cast<size_t>(x.shape(axis));
  // Falling order by inverted keys, so that equal elements keep their order there too.
  const Key flip = is_descending ? static_cast<Key>(~Key{0}) : Key{0};
  Lines(x, axis, out).sort_each([&](size_t parts) {
    return [=, sorter = RadixSort<Record>(count, parts), source = x.data<T>(),
            target = out.data<int64_t>(), in_step = x.strides()[axis],
            out_step = out.strides()[axis]](int64_t in, int64_t to) mutable {
      const auto read = [=, from = source + in](size_t i) {
        const Key key = encode<true>(from[static_cast<int64_t>(i) * in_step]);
        return Record{static_cast<Key>(key ^ flip), static_cast<Index>(i)};
      };
      const auto put = [=, result = target + to](size_t i, const Record& record) {
        result[static_cast<int64_t>(i) * out_step] = static_cast<int64_t>(record.index);
      };
      sorter(read, put);
    };
  });
}

/// By vectors; false, and nothing is done, where lines are short or the instruction set has no way.
template <class T>
bool sort_quickly(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  using Number = typename QuickLine<T>::Number;
  const auto count = static_cast<size_t>(x.shape(axis));
  const Quicksort<Number>* const kernels = quicksort_in_use<Number>();
  if (kernels == nullptr || count <= QuickLine<T>::kShortLine) return false;
  Lines(x, axis, out).sort_each([&](size_t parts) {
    return [=, sorter = QuickLine<T>(*kernels, count, parts), source = x.data<T>(),
            target = out.data<T>(), in_step = x.strides()[axis],
            out_step = out.strides()[axis]](int64_t in, int64_t to) mutable {
      sorter(source + in, in_step, target + to, out_step, is_descending);
    };
  });
  return true;
}

void sort_values(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  visit_dtype(RealTypes{}, x.dtype(), "sort", [&]<class T>(TypeTag<T>) {
    if constexpr (sizeof(T) >= 4) {
      if (sort_quickly<T>(x, axis, is_descending, out)) return;
    }
    using Key = KeyOf<T>;
    const auto count = static_cast<size_t>(x.shape(axis));
    Lines(x, axis, out).sort_each([&](size_t parts) {
      return [=, sorter = RadixSort<Key>(count, parts), source = x.data<T>(),
              target = out.data<T>(), in_step = x.strides()[axis],
              out_step = out.strides()[axis]](int64_t in, int64_t to) mutable {
        const auto read = [=, from = source + in](size_t i) {
          return encode<false>(from[static_cast<int64_t>(i) * in_step]);
        };
        const auto put = [=, result = target + to](size_t i, Key key) {
          const size_t place = is_descending ? count - 1 - i : i;
          result[static_cast<int64_t>(place) * out_step] = decode<T>(key);
        };
        sorter(read, put);
      };
    });
  });
}

void sort_indices(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  visit_dtype(RealTypes{}, x.dtype(), "argsort", [&]<class T>(TypeTag<T>) {
    // Where records are smaller for it: those of bytes never lie in memory.
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
      if (x.shape(axis) <= std::numeric_limits<uint32_t>::max()) {
        return sort_positions<T, uint32_t>(x, axis, is_descending, out);
      }
    }
    sort_positions<T, int64_t>(x, axis, is_descending, out);
  });
}

}  // namespace

template <class Number>
void sort_by_comparing(Number* numbers, int64_t count) {
  std::sort(numbers, numbers + count);
}
template void sort_by_comparing<int32_t>(int32_t*, int64_t);
template void sort_by_comparing<int64_t>(int64_t*, int64_t);

void sort_cpu(const Tensor& given, int axis, bool is_descending, const Tensor& out) {
  // In place, a pass would write what is still to be read.
  const Tensor x = given.data() == out.data() ? clone(given) : given;
  sort_in_rows(x, axis, out, [&](const Tensor& lines, int along, const Tensor& to) {
    sort_values(lines, along, is_descending, to);
  });
}

void argsort_cpu(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  sort_in_rows(x, axis, out, [&](const Tensor& lines, int along, const Tensor& to) {
    sort_indices(lines, along, is_descending, to);
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
