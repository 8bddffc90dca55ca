#include "cuop/core/box.h"

#include <gmock/gmock.h>

#include <random>

#include "cuop/core/error.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

bool holds(const Box& box, int64_t i, int64_t j) {
  return box.low[0] <= i && i < box.high[0] && box.low[1] <= j && j < box.high[1];
}

TEST(Box, HasInCommonWithAnotherWhatBothHold) {
  std::mt19937 random(3);
  const auto next = [&] { return std::uniform_int_distribution<int64_t>(0, 4)(random); };
  for (int round = 0; round < 2000; ++round) {
    const Box a{{next(), next()}, {next(), next()}}, b{{next(), next()}, {next(), next()}};
    const Box both = intersect(a, b);
    bool any = false;
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        const bool in_both = holds(a, i, j) && holds(b, i, j);
        EXPECT_EQ(holds(both, i, j), in_both) << a << ' ' << b;
        any = any || in_both;
      }
    }
    EXPECT_EQ(overlap(a, b), any) << a << ' ' << b;
    EXPECT_EQ(both.empty(), !any);
  }
}

TEST(Box, OfNoDimensionsHoldsOneIndexUnlessItIsVoid) {
  const Box one = whole_box({}), none = empty_box(0);
  EXPECT_TRUE(overlap(one, one));
  EXPECT_EQ(intersect(one, one).size(), 1);
  for (const auto& [a, b] : {std::pair(one, none), {none, one}, {none, none}}) {
    EXPECT_FALSE(overlap(a, b));
    EXPECT_TRUE(intersect(a, b).empty());
  }
}

TEST(Box, OfOtherDimensionsIsRefused) {
  const auto compare = [] { overlap(whole_box({2, 3}), whole_box({2})); };
  EXPECT_THAT(test::error_of<ShapeError>(compare), HasSubstr("different dimensions"));
}

TEST(Interval, IsClippedToALength) {
  EXPECT_EQ(clipped({-2, 3}, 5), (Interval{0, 3}));
  EXPECT_EQ(clipped({2, 9}, 5), (Interval{2, 5}));
  EXPECT_EQ(clipped({-4, -1}, 5).length(), 0);
  EXPECT_EQ(clipped({7, 9}, 5), (Interval{5, 5}));
}

TEST(BoxOf, AxesInAnotherOrder) {
  const Box box{{1, 2, 3}, {4, 6, 8}};
  EXPECT_EQ(permute(box, {2, 0, 1}), (Box{{3, 1, 2}, {8, 4, 6}}));
  EXPECT_EQ(permute(permute(box, {2, 0, 1}), {1, 2, 0}), box);
  EXPECT_EQ(permute(whole_box({}), {}), whole_box({}));
}

TEST(BoxOf, ALayoutIsThatOfItsElements) {
  const Layout whole = contiguous_layout({4, 5, 6});
  const Layout part = slice(whole, {{1, 0, 2}, {3, 5, 6}});
  EXPECT_EQ(part.shape, Shape({2, 5, 4}));
  EXPECT_EQ(part.strides, whole.strides);
  EXPECT_EQ(part.offset, 30 + 2);
  const Layout from = slice(whole, {{11, 0, 2}, {13, 5, 6}}, {10, 0, 0});
  EXPECT_EQ(from.offset, 30 + 2);
  EXPECT_EQ(slice(contiguous_layout({}), whole_box({})).offset, 0);
  EXPECT_EQ(slice(whole, {{2, 0, 0}, {2, 5, 6}}).size(), 0);
}

}  // namespace
}  // namespace cuop
