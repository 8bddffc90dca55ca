#include "cuop/core/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "cuop/core/error.h"

namespace cuop {
namespace {

/// Element offsets in row-major order of the layout's index: what a layout means.
std::vector<int64_t> offsets(const Layout& layout) {
  std::vector<int64_t> result{layout.offset};
  for (int i = 0; i < layout.ndim(); ++i) {
    std::vector<int64_t> next;
    for (int64_t base : result) {
      for (int64_t k = 0; k < layout.shape[i]; ++k) next.push_back(base + k * layout.strides[i]);
    }
    result = std::move(next);
  }
  return result;
}

Layout random_view(std::mt19937& random) {
  const auto pick = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  Shape shape;
  for (int64_t i = pick(4); i >= 0; --i) shape.push_back(pick(5) + (pick(4) != 0 ? 1 : 0));
  Layout layout = contiguous_layout(shape);
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.shape[i] > 1 && pick(2) == 0) {
      layout = slice(layout, i, layout.shape[i] - 1, (layout.shape[i] + 1) / 2, -2);
    }
  }
  if (layout.ndim() > 1 && pick(2) == 0) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < layout.ndim(); ++i) axes.push_back((i + 1) % layout.ndim());
    layout = permute(layout, axes);
  }
  return layout;
}

TEST(Layout, ExtentCoversExactlyWhatIsTouched) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Layout layout = random_view(random);
    const std::vector<int64_t> touched = offsets(layout);
    const Extent e = extent(layout);
    if (touched.empty()) {
      EXPECT_EQ(e.begin, e.end);
    } else {
      EXPECT_EQ(e.begin, *std::min_element(touched.begin(), touched.end()));
      EXPECT_EQ(e.end, *std::max_element(touched.begin(), touched.end()) + 1);
    }
    const std::set<int64_t> distinct(touched.begin(), touched.end());
    if (distinct.size() < touched.size()) {
      EXPECT_TRUE(may_self_overlap(layout));
    }
  }
}

TEST(Layout, ReshapeKeepsTheOrderOrDeclines) {
  std::mt19937 random(2);
  int views = 0;
  for (int i = 0; i < 5000; ++i) {
    const Layout layout = random_view(random);
    const int64_t count = layout.size();
    for (const Shape& shape :
         {Shape{count}, Shape{1, count, 1}, Shape{count / 2, 2}, Shape{2, count / 2}}) {
      if (element_count(shape) != count) continue;
      const auto reshaped = try_reshape(layout, shape);
      if (!reshaped) {
        EXPECT_FALSE(layout.is_contiguous());
        continue;
      }
      ++views;
      EXPECT_EQ(offsets(*reshaped), offsets(layout));
    }
  }
  EXPECT_GT(views, 1000);
}

TEST(Layout, ReshapeFindsEveryPossibleView) {
  Layout columns = slice(contiguous_layout({4, 6}), 1, 0, 2, 2);  // strides (6, 2)
  EXPECT_TRUE(try_reshape(columns, {2, 2, 2}));
  EXPECT_FALSE(try_reshape(columns, {8}));
  EXPECT_TRUE(try_reshape(slice(contiguous_layout({4, 6}), 1, 0, 3, 2), {12}));  // step 2 all along
  EXPECT_TRUE(try_reshape(slice(contiguous_layout({4, 6}), 0, 0, 2, 2), {2, 3, 2}));
}

Strides strides_of_result(const Shape& shape, const std::vector<Layout>& operands) {
  std::vector<const Layout*> pointers;
  for (const Layout& operand : operands) pointers.push_back(&operand);
  const Layout result = layout_of_result(shape, pointers);
  EXPECT_EQ(result.shape, shape);
  EXPECT_EQ(result.offset, 0);
  EXPECT_FALSE(may_self_overlap(result));
  const Extent touched = extent(result);
  EXPECT_EQ(touched.end - touched.begin, element_count(shape));
  return result.strides;
}

Layout turned(const Shape& shape, const std::vector<int64_t>& axes) {
  return permute(contiguous_layout(shape), axes);
}

TEST(Layout, ResultsLieAsTheirOperands) {
  const Layout rows = contiguous_layout({4, 6}), columns = turned({6, 4}, {1, 0});
  EXPECT_EQ(strides_of_result({4, 6}, {}), (Strides{6, 1}));
  EXPECT_EQ(strides_of_result({4, 6}, {columns}), (Strides{1, 4}));
  EXPECT_EQ(strides_of_result({4, 6}, {columns, columns}), (Strides{1, 4}));
  // Where they disagree, in rows.
  EXPECT_EQ(strides_of_result({4, 6}, {columns, rows}), (Strides{6, 1}));
  EXPECT_EQ(strides_of_result({4, 6}, {rows, columns}), (Strides{6, 1}));
  EXPECT_EQ(strides_of_result({4, 6}, {columns, slice(rows, 0, 3, 4, -1)}), (Strides{6, 1}));
  // Gaps and backward steps are not repeated.
  EXPECT_EQ(strides_of_result({2, 6}, {slice(columns, 0, 3, 2, -2)}), (Strides{1, 2}));
  EXPECT_EQ(strides_of_result({4, 3}, {slice(rows, 1, 0, 3, 2)}), (Strides{3, 1}));
  // Along axes that are stretched or have one element an operand says nothing.
  EXPECT_EQ(strides_of_result({4, 6}, {columns, contiguous_layout({6})}), (Strides{1, 4}));
  EXPECT_EQ(strides_of_result({4, 6}, {columns, contiguous_layout({4, 1})}), (Strides{1, 4}));
  EXPECT_EQ(strides_of_result({4, 6}, {contiguous_layout({4, 1}), contiguous_layout({6})}),
            (Strides{6, 1}));
  EXPECT_EQ(strides_of_result({4, 6}, {broadcast_to(rows, {4, 6}, "x"), columns}), (Strides{6, 1}));
  // Of more axes each pair is asked.
  EXPECT_EQ(strides_of_result({2, 3, 4}, {turned({3, 4, 2}, {2, 0, 1})}), (Strides{1, 8, 2}));
  EXPECT_EQ(strides_of_result({2, 3, 4}, {turned({4, 3, 2}, {2, 1, 0}), contiguous_layout({4})}),
            (Strides{1, 2, 6}));
  EXPECT_EQ(strides_of_result({2, 3, 4}, {turned({3, 2, 4}, {1, 0, 2}), contiguous_layout({3, 4})}),
            (Strides{4, 8, 1}));
  EXPECT_EQ(strides_of_result({0, 6}, {turned({6, 0}, {1, 0})}), (Strides{6, 1}));
}

TEST(Layout, InferShape) {
  EXPECT_EQ(infer_shape({-1, 3}, 12, "reshape"), (Shape{4, 3}));
  EXPECT_THROW(infer_shape({-1, 5}, 12, "reshape"), ShapeError);
  EXPECT_THROW(infer_shape({-1, -1}, 12, "reshape"), ShapeError);
  EXPECT_THROW(infer_shape({-1, 0}, 0, "reshape"), ShapeError);
  EXPECT_THROW(infer_shape({3, 3}, 12, "reshape"), ShapeError);
}

TEST(Layout, RefusesWrongPermutations) {
  const Layout layout = contiguous_layout({2, 3});
  const std::vector<int64_t> twice{0, 0}, few{0}, far{0, 2};
  EXPECT_THROW(permute(layout, twice), ShapeError);
  EXPECT_THROW(permute(layout, few), ShapeError);
  EXPECT_THROW(permute(layout, far), ShapeError);
}

TEST(Dims, RefusesTooManyDimensions) {
  EXPECT_THROW(Dims(std::vector<int64_t>(kMaxDims + 1, 1)), ShapeError);
}

TEST(Layout, MemoryOrderIsThatOfTheStrides) {
  const Layout rows = contiguous_layout({3, 4, 5});
  EXPECT_EQ(memory_order(rows), Dims({0, 1, 2}));
  const int64_t axes[] = {2, 0, 1};
  const Layout turned = permute(rows, axes);
  const Dims order = memory_order(turned);
  EXPECT_EQ(order, Dims({1, 2, 0}));
  EXPECT_TRUE(permute(turned, order).is_contiguous());
  EXPECT_EQ(memory_order(slice(turned, 0, 4, 5, -1)), order);  // backwards
  // A broadcast axis has no place in memory.
  EXPECT_EQ(memory_order(broadcast_to(contiguous_layout({4, 1}), {4, 7}, "test")), Dims({1, 0}));
  EXPECT_EQ(memory_order(contiguous_layout({})), Dims());
}

}  // namespace
}  // namespace cuop
