// The order in which elements are computed where tensors do not lie in the order of the axes.
#include "cuop/jit/cpu/arrangement.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "cuop/core/dtype.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::jit {
namespace {

constexpr int64_t kPlaneBytes = 16 * 1024;

/// Memory of `shape` in which axis order[0] has the longest steps; the shortest axis of memory has
/// `gap` elements more than are used.
Tensor lying(const Shape& shape, const std::vector<int64_t>& order, int64_t gap, DType dtype) {
  Shape stored;
  for (const int64_t axis : order) stored.push_back(shape[static_cast<int>(axis)]);
  const int last = stored.ndim() - 1;
  const int64_t used = stored[last];
  stored[last] += gap;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return permute(slice(zeros(stored, dtype), last, 0, used), back);
}

/// Small whole numbers, which every dtype holds.
Tensor filled(const Tensor& tensor, unsigned seed) {
  std::vector<double> values(static_cast<size_t>(tensor.size()));
  std::mt19937 generator(seed);
  for (double& value : values) value = static_cast<double>(generator() % 50);
  copy_into(tensor, from_values<double>(tensor.shape(), std::span<const double>(values)));
  return tensor;
}

bool are_equal(const Tensor& a, const Tensor& b) {
  return all(equal(clone(a), clone(b))).data<bool>()[0];
}

std::vector<Part> parts_of(const Tensor& leaf, const Tensor& out) {
  const Tensor *leaves[] = {&leaf}, *outputs[] = {&out};
  return arranged({out.shape(), 0, leaves, {}, outputs}, kPlaneBytes, itemsize(out.dtype()));
}

TEST(Arrangement, EachElementIsInOnePart) {
  for (const Shape& shape : {Shape{520, 1030}, Shape{64, 256}, Shape{67, 256}, Shape{64, 301},
                             Shape{15, 2000}, Shape{1000, 31}, Shape{3, 100, 700}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8}) {
      std::vector<int64_t> back(static_cast<size_t>(shape.ndim()));
      for (size_t i = 0; i < back.size(); ++i) back[i] = static_cast<int64_t>(back.size() - 1 - i);
      const int64_t pitch = 4096 / itemsize(dtype);
      const Tensor leaf = lying(shape, back, pitch - shape[0] % pitch, dtype);
      const Tensor count = zeros(shape, dtype);
      for (const Part& part : parts_of(leaf, count)) {
        const Tensor& seen = *part.bindings().outputs[0];
        add(seen, 1, &seen);
      }
      EXPECT_TRUE(are_equal(count, ones(shape, dtype))) << shape << " " << dtype;
    }
  }
}

TEST(Arrangement, GoesInPlanesWhereRowsWouldDropEachOther) {
  const auto is_in_planes = [](int64_t rows, int64_t columns, DType dtype) {
    const Tensor leaf = permute(zeros({columns, rows}, dtype), std::vector<int64_t>{1, 0});
    return parts_of(leaf, zeros({rows, columns}, dtype))[0].is_in_planes();
  };
  EXPECT_TRUE(is_in_planes(1024, 512, DType::kFloat32));   // lines 4 KiB apart
  EXPECT_FALSE(is_in_planes(1000, 512, DType::kFloat32));  // all over the cache
  EXPECT_TRUE(is_in_planes(2000, 2000, DType::kFloat32));  // each on a page of its own
  EXPECT_FALSE(is_in_planes(1024, 31, DType::kFloat32));   // too few columns
  EXPECT_FALSE(is_in_planes(8, 2000, DType::kFloat32));    // too few rows
}

TEST(Arrangement, FollowsTheMemoryOfMost) {
  const Shape shape{50, 70};
  const Tensor across = permute(zeros({70, 50}), std::vector<int64_t>{1, 0}), along = zeros(shape);
  const Tensor row = zeros({70}), column = zeros({50, 1});
  const auto first_part = [&](const Tensor& a, const Tensor& b, const Tensor& out) {
    const Tensor *leaves[] = {&a, &b}, *outputs[] = {&out};
    return std::move(arranged({shape, 0, leaves, {}, outputs}, kPlaneBytes, 4)[0]);
  };
  {
    const Part part = first_part(row, across, across);
    EXPECT_EQ(part.bindings().shape, (Shape{70, 50}));
    EXPECT_TRUE(part.bindings().outputs[0]->is_contiguous());
    EXPECT_EQ(part.bindings().leaves[0]->strides(), (Strides{1, 0}));
  }
  // Elements that are repeated do not count.
  EXPECT_TRUE(first_part(column, column, along).bindings().outputs[0]->is_contiguous());
  EXPECT_TRUE(first_part(across, column, along).bindings().outputs[0]->is_contiguous());
  EXPECT_TRUE(first_part(across, across, along).bindings().leaves[0]->is_contiguous());
}

TEST(Arrangement, IsWorthItForManyElementsInAnotherOrder) {
  const auto is_worth = [](const Tensor& leaf, const Tensor& out) {
    const Tensor *leaves[] = {&leaf}, *outputs[] = {&out};
    return is_worth_arranging({out.shape(), 0, leaves, {}, outputs});
  };
  const auto transposed = [](const Tensor& x) { return permute(x, std::vector<int64_t>{1, 0}); };
  EXPECT_TRUE(is_worth(zeros({70}), transposed(zeros({70, 50}))));
  EXPECT_FALSE(is_worth(zeros({30}), transposed(zeros({30, 50}))));  // few
  EXPECT_FALSE(is_worth(transposed(zeros({70, 50})), zeros({50, 70})));
  EXPECT_TRUE(is_worth(transposed(zeros({150, 150})), zeros({150, 150})));
  EXPECT_FALSE(is_worth(slice(zeros({200, 200}), 1, 0, 150), zeros({200, 150})));  // in order
}

TEST(Arrangement, TensorsThatLieAlikeAreOneLine) {
  const auto line = [](const Tensor& leaf, const Tensor& out) {
    const Tensor *leaves[] = {&leaf}, *outputs[] = {&out};
    return as_one_line({out.shape(), 0, leaves, {}, outputs});
  };
  const auto turned = [](const Tensor& x) { return permute(x, std::vector<int64_t>{1, 2, 0}); };
  const Shape shape{5, 4, 3};
  const Tensor x = turned(zeros({3, 5, 4})), y = turned(zeros({3, 5, 4}, DType::kInt8));
  const auto part = line(x, y);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bindings().shape, (Shape{60}));
  EXPECT_EQ(part->bindings().leaves[0]->data(), x.data());
  EXPECT_EQ(part->bindings().outputs[0]->data(), y.data());
  EXPECT_TRUE(part->bindings().leaves[0]->is_contiguous());
  EXPECT_FALSE(line(zeros(shape), zeros(shape)));  // in rows already
  EXPECT_FALSE(line(zeros(shape), y));             // in another order
  EXPECT_FALSE(line(zeros({3}), y));               // repeated
  const Tensor gaps = turned(slice(zeros({3, 5, 8}), 2, 0, 4));
  EXPECT_FALSE(line(gaps, gaps));
  const Tensor back = slice(x, 0, std::nullopt, std::nullopt, -1);
  EXPECT_FALSE(line(back, back));
}

TEST(Arrangement, ResultsAreThoseOfTensorsInOrder) {
  const std::vector<std::vector<int64_t>> orders{{0, 1, 2}, {2, 1, 0}, {1, 2, 0},
                                                 {0, 2, 1}, {2, 0, 1}, {1, 0, 2}};
  unsigned seed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kFloat16,
                            DType::kComplex128, DType::kInt32}) {
    for (const Shape& shape : {Shape{5, 70, 90}, Shape{2, 261, 515}, Shape{33, 1, 1025}}) {
      for (size_t i = 0; i < orders.size(); ++i) {
        const auto& other = orders[(i + seed) % orders.size()];
        const int64_t gap = seed % 3 == 0 ? 0 : (seed % 3 == 1 ? 3 : 1024 - shape[2] % 1024);
        const Tensor a = filled(lying(shape, orders[i], gap, dtype), ++seed);
        const Tensor b = filled(lying(shape, other, 0, dtype), ++seed);
        const Tensor row = filled(zeros({shape[2]}, dtype), ++seed);
        const Tensor out = lying(shape, orders[(i + 2) % orders.size()], gap, dtype);
        const Tensor expected = add(multiply(clone(a), clone(b)), row);
        add(multiply(a, b), row, &out);
        EXPECT_TRUE(are_equal(out, expected)) << dtype << " " << shape << " " << i;
        const Tensor doubled = add(clone(a), clone(a));
        add(a, a, &a);  // in place
        EXPECT_TRUE(are_equal(a, doubled)) << dtype << " " << shape << " " << i;
      }
    }
  }
}

TEST(Arrangement, BackwardsAndRepeatedElementsStayWhereTheyAre) {
  const Tensor stored = filled(zeros({1024, 512}), 1);
  const Tensor across = permute(stored, std::vector<int64_t>{1, 0});
  const Tensor backwards =
      slice(slice(across, 0, 511, std::nullopt, -1), 1, 1023, std::nullopt, -1);
  const Tensor column = filled(zeros({512, 1}), 2);
  const Tensor expected = subtract(clone(backwards), column);
  EXPECT_TRUE(are_equal(subtract(backwards, column), expected));
  subtract(backwards, column, &backwards);
  EXPECT_TRUE(are_equal(backwards, expected));
}

}  // namespace
}  // namespace cuop::jit
