#include "cuop/core/dims.h"

#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

TEST(Dims, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}, "add"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {3}, "add"), (Shape{3}));
  EXPECT_EQ(broadcast_shapes({0}, {1}, "add"), (Shape{0}));
  EXPECT_THROW(broadcast_shapes({2}, {3}, "add"), ShapeError);
}

TEST(Dims, CountsWithoutOverflow) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({int64_t{1} << 62, 8, 0}), 0);
  EXPECT_THROW(element_count({int64_t{1} << 62, 8}), UnnamedShapeError);
  EXPECT_THROW(element_count({-1}), UnnamedShapeError);
}

TEST(Dims, NamesTheAxisThatIsOutOfRange) {
  EXPECT_EQ(normalize_axis(-1, 2, "softmax"), 1);
  EXPECT_EQ(test::error_of<ShapeError>([] { normalize_axis(3, 2, "softmax"); }),
            "softmax: axis 3 is out of range for a tensor of 2 dimensions");
}

TEST(Dims, FindsAnAxisAmongOthers) {
  const std::vector<int> axes = normalize_axes(std::vector<int64_t>{-1, 0}, 3, "sum");
  EXPECT_TRUE(has_axis(axes, 0));
  EXPECT_FALSE(has_axis(axes, 1));
  EXPECT_TRUE(has_axis(axes, 2));
  EXPECT_FALSE(has_axis({}, 0));
}

}  // namespace
}  // namespace cuop
