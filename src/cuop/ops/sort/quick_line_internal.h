// Lines of values of 4 and 8 bytes sorted by quicksort_kernels.h: values become numbers of the same
// order, which are sorted and become values again.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/sort/quicksort_kernels.h"
#include "cuop/ops/sort/radix_sort_internal.h"
#include "cuop/ops/sort/sort_keys_internal.h"

namespace cuop::kernels {

template <class T>
class QuickLine {
 public:
  using Number = std::make_signed_t<KeyOf<T>>;
  /// Lines up to which comparing each key with all others is quicker.
  static constexpr size_t kShortLine = 16;

  /// Lines of `count` elements, in `parts` parts that threads share.
  QuickLine(const Quicksort<Number>& kernels, size_t count, size_t parts)
      : kernels_(kernels), count_(count), parts_(parts) {}

  /// Where the result lies in a row it is sorted there.
  void operator()(const T* from, int64_t in_step, T* to, int64_t out_step, bool is_descending) {
    const bool is_there = out_step == 1 && !is_descending;
    if (!is_there && !aside_) aside_ = std::make_unique_for_overwrite<Number[]>(count_);
    Number* const numbers = is_there ? reinterpret_cast<Number*>(to) : aside_.get();
    each_piece([&](int64_t begin, int64_t end) {
      const void* values = from + begin;
      if (in_step != 1) {
        for (int64_t i = begin; i < end; ++i) numbers[i] = std::bit_cast<Number>(from[i * in_step]);
        values = numbers + begin;
      }
      kernels_.read(values, end - begin, kKindOf<T>, numbers + begin);
    });
    if (parts_ == 1) {
      kernels_.sort(numbers, static_cast<int64_t>(count_));
    } else {
      sort_together(numbers);
    }
    const int64_t step = is_descending ? -out_step : out_step;
    T* const first = is_descending ? to + (static_cast<int64_t>(count_) - 1) * out_step : to;
    each_piece([&](int64_t begin, int64_t end) {
      kernels_.write(numbers + begin, end - begin, kKindOf<T>);
      if (is_there) return;
      for (int64_t i = begin; i < end; ++i) first[i * step] = std::bit_cast<T>(numbers[i]);
    });
  }

 private:
  struct Range {
    int64_t begin, length;
  };
  /// body(begin, end) of all elements, by all threads where they share the line.
  template <class Body>
  void each_piece(const Body& body) const {
    const auto count = static_cast<int64_t>(count_);
    if (parts_ == 1) return in_pieces(count, body);
    backend::parallel_for(count, static_cast<int64_t>(kSortedPart), body);
  }

  /// All threads split what there is, until there is enough for each of them to sort.
  void sort_together(Number* numbers) {
    constexpr size_t kRangesOfAPart = 4;  // as they differ in length
    std::vector<Range> ranges{{0, static_cast<int64_t>(count_)}};
    const auto for_each_range = [&](const auto& body) {
      backend::parallel_for_each(static_cast<int64_t>(ranges.size()), 1, body);
    };
    while (ranges.size() < kRangesOfAPart * parts_) {
      std::vector<int64_t> lows(ranges.size(), 0);
      for_each_range([&](int64_t i) {
        const Range& range = ranges[static_cast<size_t>(i)];
        if (range.length < static_cast<int64_t>(kSortedPart)) return;
        lows[static_cast<size_t>(i)] = kernels_.split(numbers + range.begin, range.length);
      });
      std::vector<Range> finer;
      for (size_t i = 0; i < ranges.size(); ++i) {
        const auto [begin, length] = ranges[i];
        if (lows[i] > 0) finer.push_back({begin, lows[i]});
        if (lows[i] < length) finer.push_back({begin + lows[i], length - lows[i]});
      }
      if (finer.size() == ranges.size()) break;
      ranges = std::move(finer);
    }
    for_each_range([&](int64_t i) {
      const Range& range = ranges[static_cast<size_t>(i)];
      kernels_.sort(numbers + range.begin, range.length);
    });
  }

  const Quicksort<Number>& kernels_;
  size_t count_, parts_;
  std::unique_ptr<Number[]> aside_;
};

}  // namespace cuop::kernels
