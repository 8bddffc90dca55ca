// Indexing, taking and masks against plain loops, and where every index ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::error_of;
using test::values;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Tensor of(const std::vector<int64_t>& values) {
  const Tensor tensor = empty({static_cast<int64_t>(values.size())}, DType::kInt64, kCpu);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return tensor;
}

/// 0, 1, 2, ... in this shape.
Tensor counted(const Shape& shape) {
  const Tensor tensor = empty(shape, DType::kInt64, kCpu);
  std::iota(tensor.data<int64_t>(), tensor.data<int64_t>() + tensor.size(), int64_t{0});
  return tensor;
}

Tensor item_at(const Tensor& x, const std::vector<Index>& index) { return get_item(x, index); }

TEST(Index, TheFirstAndTheLastOfAnAxisAreInAndTheirNeighboursOut) {
  const Tensor x = counted({5, 3});
  for (int64_t i = -5; i < 5; ++i) {
    const int64_t row = i < 0 ? i + 5 : i;
    const std::vector<int64_t> expected{3 * row, 3 * row + 1, 3 * row + 2};
    EXPECT_EQ(values<int64_t>(item_at(x, {i})), expected) << i;
    EXPECT_EQ(values<int64_t>(item_at(x, {of({i})})), expected) << i;
    EXPECT_EQ(values<int64_t>(take(x, of({i}), 0)), expected) << i;
    EXPECT_EQ(values<int64_t>(gather(x, 0, reshape(of({i, i, i}), {1, 3}))), expected) << i;
    EXPECT_EQ(values<int64_t>(take_along_axis(x, reshape(of({i, i, i}), {1, 3}), 0)), expected)
        << i;
  }
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  for (const int64_t i : {int64_t{5}, int64_t{-6}, kFar, -kFar - 1}) {
    EXPECT_THAT(error_of<IndexError>([&] { item_at(x, {i}); }), HasSubstr("out of range")) << i;
    EXPECT_NE(error_of<IndexError>([&] { item_at(x, {of({0, i})}); }), "") << i;
    EXPECT_NE(error_of<IndexError>([&] { take(x, of({0, i}), 0); }), "") << i;
    EXPECT_NE(error_of<IndexError>([&] { gather(x, 0, reshape(of({0, i, 0}), {1, 3})); }), "") << i;
    EXPECT_NE(error_of<IndexError>([&] {
                take_along_axis(x, reshape(of({0, i, 0}), {1, 3}), 0);
              }),
              "")
        << i;
  }
}

TEST(Index, TakingFromTheFlattenedCountsAllElements) {
  const Tensor x = counted({4, 3});
  EXPECT_THAT(values<int64_t>(take(x, of({11, -12, 0, -1}))), ElementsAre(11, 0, 0, 11));
  EXPECT_NE(error_of<IndexError>([&] { take(x, of({12})); }), "");
  EXPECT_NE(error_of<IndexError>([&] { take(x, of({-13})); }), "");
  EXPECT_NE(error_of<IndexError>([&] { take(counted({0, 3}), of({0})); }), "");
}

TEST(Index, NothingIsWrittenWhenOneIndexIsWrong) {
  for (const int64_t wrong : {int64_t{6}, int64_t{-7}}) {
    const Tensor x = counted({6});
    EXPECT_NE(error_of<IndexError>([&] {
                set_item(x, std::vector<Index>{of({0, 1, wrong})}, of({9}));
              }),
              "");
    EXPECT_NE(error_of<IndexError>([&] { put_along_axis(x, of({0, 1, wrong}), of({9}), 0); }), "");
    EXPECT_THAT(values<int64_t>(x), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(Index, SlicesAreCutAsPythonCutsThem) {
  for (int64_t length : {0, 1, 5}) {
    const Tensor x = counted({length});
    for (int64_t start = -7; start <= 7; ++start) {
      for (int64_t stop = -7; stop <= 7; ++stop) {
        for (const int64_t step : {-3, -1, 1, 2}) {
          // Python's own rule: both ends are clamped to what a step in this direction can reach.
          const auto clamp = [&](int64_t i) {
            if (i < 0) i += length;
            return std::clamp<int64_t>(i, step < 0 ? -1 : 0, step < 0 ? length - 1 : length);
          };
          std::vector<int64_t> expected;
          for (int64_t i = clamp(start); step < 0 ? i > clamp(stop) : i < clamp(stop); i += step) {
            expected.push_back(i);
          }
          EXPECT_THAT(values<int64_t>(item_at(x, {SliceIndex{start, stop, step}})),
                      ElementsAreArray(expected))
              << length << ": " << start << ':' << stop << ':' << step;
        }
      }
    }
  }
}

TEST(Index, TheLongestStepsTakeOneElement) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  const Tensor x = counted({5});
  for (const int64_t bound : {kFar, -kFar - 1}) {
    EXPECT_THAT(values<int64_t>(item_at(x, {SliceIndex{std::nullopt, std::nullopt, bound}})),
                ElementsAre(bound > 0 ? 0 : 4));
    EXPECT_THAT(values<int64_t>(item_at(x, {SliceIndex{3, std::nullopt, bound}})), ElementsAre(3));
    EXPECT_EQ(item_at(x, {SliceIndex{bound, std::nullopt, 1}}).size(), bound > 0 ? 0 : 5);
    EXPECT_EQ(item_at(x, {SliceIndex{std::nullopt, bound, 1}}).size(), bound > 0 ? 5 : 0);
  }
}

TEST(Index, ArraysAndMasksPickTheSameElements) {
  const Tensor x = counted({3, 4});
  const Tensor mask = empty({3, 4}, DType::kBool, kCpu);
  for (int i = 0; i < 12; ++i) mask.data<bool>()[i] = i % 5 == 1;
  EXPECT_THAT(values<int64_t>(item_at(x, {mask})), ElementsAre(1, 6, 11));
  EXPECT_THAT(values<int64_t>(masked_select(x, mask)), ElementsAre(1, 6, 11));
  EXPECT_THAT(values<int64_t>(item_at(x, {of({0, 1, 2}), of({1, 2, -1})})), ElementsAre(1, 6, 11));
  EXPECT_EQ(count_nonzero(mask), 3);
  EXPECT_THAT(values<int64_t>(nonzero(mask)[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(values<int64_t>(nonzero(mask)[1]), ElementsAre(1, 2, 3));
  EXPECT_NE(error_of<IndexError>([&] {
              item_at(x, {item_at(mask, {SliceIndex{0, 2}})});
            }),
            "");  // too short a mask
}

TEST(Index, AnElementNamedTwiceKeepsTheLastValue) {
  const Tensor x = counted({4});
  set_item(x, std::vector<Index>{of({2, 0, 2, -2})}, of({10, 11, 12, 13}));
  EXPECT_THAT(values<int64_t>(x), ElementsAre(11, 1, 13, 3));
}

TEST(Index, TooManyIndicesAndTwoEllipsesAreRefused) {
  const Tensor x = counted({2, 3});
  EXPECT_NE(error_of<IndexError>([&] { item_at(x, {int64_t{0}, int64_t{0}, int64_t{0}}); }), "");
  EXPECT_NE(error_of<IndexError>([&] { item_at(x, {EllipsisIndex{}, EllipsisIndex{}}); }), "");
  EXPECT_THAT(values<int64_t>(item_at(x, {EllipsisIndex{}, int64_t{1}})), ElementsAre(1, 4));
  EXPECT_EQ(item_at(x, {NewAxisIndex{}, EllipsisIndex{}}).shape(), (Shape{1, 2, 3}));
}

}  // namespace
}  // namespace cuop
