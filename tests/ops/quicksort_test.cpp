// Sorting by vectors, of every instruction set that has it, beside the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "cuop/core/interrupt.h"
#include "cuop/ops/sort/quick_line_internal.h"

namespace cuop::kernels {
namespace {

template <class Number>
using Pattern = std::function<Number(int64_t i, int64_t count, uint64_t random)>;

template <class Number>
std::vector<Pattern<Number>> patterns() {
  using Limits = std::numeric_limits<Number>;
  return {
      [](int64_t, int64_t, uint64_t random) { return static_cast<Number>(random); },
      [](int64_t, int64_t, uint64_t random) { return static_cast<Number>(random % 3); },
      [](int64_t, int64_t, uint64_t random) {
        return random % 2 == 0 ? Limits::max() : Limits::min();
      },
      [](int64_t, int64_t, uint64_t) { return Number{7}; },
      [](int64_t i, int64_t, uint64_t) { return static_cast<Number>(i); },
      [](int64_t i, int64_t count, uint64_t) { return static_cast<Number>(count - i); },
      [](int64_t i, int64_t count, uint64_t) {
        return static_cast<Number>(std::min(i, count - i));
      },
      [](int64_t i, int64_t, uint64_t) { return static_cast<Number>(i % 32); },
  };
}

/// work(kernels) of every instruction set that has them.
template <class Number, class Work>
void for_each_level(const Work& work) {
  for (const isa::Level level : {isa::Level::kBaseline, isa::Level::kV3, isa::Level::kV4}) {
    if (!isa::is_supported(level)) continue;
    const auto* kernels =
        isa::choose(level, []<class Level>(Level) { return quicksort<Level, Number>(); });
    if (kernels == nullptr) continue;
    SCOPED_TRACE(isa::name(level));
    work(*kernels);
  }
}

template <class Number>
void expect_sorts(const Quicksort<Number>& kernels, int64_t count, const Pattern<Number>& pattern) {
  std::mt19937_64 random(static_cast<uint64_t>(count));
  // Nothing beside the numbers is touched.
  constexpr int64_t kBeside = 40;
  std::vector<Number> numbers(static_cast<size_t>(count + 2 * kBeside), Number{-5});
  const auto begin = numbers.begin() + kBeside, end = begin + count;
  for (int64_t i = 0; i < count; ++i) begin[i] = pattern(i, count, random());
  std::vector<Number> expected = numbers;
  std::sort(expected.begin() + kBeside, expected.begin() + kBeside + count);
  kernels.sort(&*begin, end - begin);
  ASSERT_EQ(numbers, expected) << count;
}

template <class Number>
void expect_sorts_all() {
  for_each_level<Number>([](const Quicksort<Number>& kernels) {
    for (const Pattern<Number>& pattern : patterns<Number>()) {
      for (int64_t count = 0; count < 600; ++count) expect_sorts(kernels, count, pattern);
      for (const int64_t count : {2047, 2048, 4099, 70001}) expect_sorts(kernels, count, pattern);
    }
  });
}

TEST(QuickSort, NumbersOf4Bytes) { expect_sorts_all<int32_t>(); }
TEST(QuickSort, NumbersOf8Bytes) { expect_sorts_all<int64_t>(); }

template <class Number>
void expect_splits() {
  for_each_level<Number>([](const Quicksort<Number>& kernels) {
    for (const Pattern<Number>& pattern : patterns<Number>()) {
      for (const int64_t count : {64, 65, 97, 1000, 5000}) {
        std::mt19937_64 random(static_cast<uint64_t>(count));
        std::vector<Number> numbers;
        for (int64_t i = 0; i < count; ++i) numbers.push_back(pattern(i, count, random()));
        std::vector<Number> before = numbers;
        const int64_t low = kernels.split(numbers.data(), count);
        ASSERT_GT(low, 0);
        ASSERT_LE(low, count);
        const auto wall = numbers.begin() + low;
        const Number highest = *std::max_element(numbers.begin(), wall);
        ASSERT_TRUE(std::all_of(wall, numbers.end(), [&](Number x) { return x > highest; }));
        if (low == count) {
          ASSERT_EQ(std::count(numbers.begin(), wall, highest), count);
        }
        std::sort(before.begin(), before.end());
        std::sort(numbers.begin(), numbers.end());
        ASSERT_EQ(numbers, before);
      }
    }
  });
}

TEST(QuickSort, SplitsNumbersOf4Bytes) { expect_splits<int32_t>(); }
TEST(QuickSort, SplitsNumbersOf8Bytes) { expect_splits<int64_t>(); }

/// A line of values, NaN and both zeros among them, that lie `step` apart.
template <class T>
void expect_line_sorted(QuickLine<T>& sorter, std::vector<T> values, int64_t step,
                        bool is_descending) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<T> given(values.size() * static_cast<size_t>(step)), sorted = given;
  for (int64_t i = 0; i < count; ++i) {
    given[static_cast<size_t>(i * step)] = values[static_cast<size_t>(i)];
  }
  sorter(given.data(), step, sorted.data(), step, is_descending);
  std::vector<KeyOf<T>> keys, expected;
  for (int64_t i = 0; i < count; ++i) {
    keys.push_back(encode<false>(sorted[static_cast<size_t>(i * step)]));
    expected.push_back(encode<false>(values[static_cast<size_t>(i)]));
  }
  std::sort(expected.begin(), expected.end());
  if (is_descending) std::reverse(expected.begin(), expected.end());
  EXPECT_TRUE(keys == expected) << count << " values, step " << step;
}

template <class T>
void expect_lines_sorted() {
  for_each_level<typename QuickLine<T>::Number>([](const auto& kernels) {
    std::mt19937_64 random(1);
    std::vector<T> values(200'003);
    for (T& value : values) value = std::bit_cast<T>(static_cast<KeyOf<T>>(random()));
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      const T some[] = {T{0}, -T{0}, Limits::infinity(), -Limits::infinity(), Limits::denorm_min()};
      std::copy(std::begin(some), std::end(some), values.begin() + 1000);
    }
    for (const size_t parts : {1, 3}) {
      QuickLine<T> sorter(kernels, values.size(), parts);
      for (const int64_t step : {1, 2}) {
        for (const bool is_descending : {false, true}) {
          expect_line_sorted(sorter, values, step, is_descending);
        }
      }
    }
  });
}

TEST(QuickSort, LinesOfFloats) {
  expect_lines_sorted<float>();
  expect_lines_sorted<double>();
}
TEST(QuickSort, LinesOfIntegers) {
  expect_lines_sorted<int32_t>();
  expect_lines_sorted<uint32_t>();
  expect_lines_sorted<int64_t>();
  expect_lines_sorted<uint64_t>();
}

TEST(QuickSort, LongOnesAreInterrupted) {
  for_each_level<int32_t>([](const Quicksort<int32_t>& kernels) {
    std::vector<int32_t> numbers(1 << 20);
    const std::atomic<bool> is_interrupted = true;
    const CancelScope cancelled(is_interrupted);
    EXPECT_THROW(kernels.sort(numbers.data(), static_cast<int64_t>(numbers.size())), Interrupted);
  });
}

TEST(QuickSort, WhatWasUnluckyIsComparedAndSwapped) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 1000; ++i) numbers.push_back(i * 7919 % 1000);
  sort_by_comparing(numbers.data(), 1000);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(numbers[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace cuop::kernels
