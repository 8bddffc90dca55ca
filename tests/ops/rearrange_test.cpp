// Views and copies of other shapes, triangles, differences and decimal places, beside lists that
// were written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <numeric>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/decimals.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/triangle.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/cumulative_sum.h"
#include "cuop/ops/reduce/difference.h"
#include "cuop/ops/sort/search.h"
#include "tests/error_of.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::error_of;
using test::values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 0, 1, 2, ... in this shape.
Tensor counted(const Shape& shape) {
  const Tensor tensor = empty(shape, DType::kInt64, kCpu);
  std::iota(tensor.data<int64_t>(), tensor.data<int64_t>() + tensor.size(), int64_t{0});
  return tensor;
}

template <class T>
Tensor list(const std::vector<T>& values, DType dtype) {
  const Tensor tensor = empty({static_cast<int64_t>(values.size())}, dtype, kCpu);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

TEST(Rearrange, SeveralAxesMoveAtOnce) {
  const Tensor x = counted({2, 3, 4, 5});
  const int64_t from[] = {3, 0}, to[] = {0, 2}, once[] = {1}, twice[] = {1, 1};
  EXPECT_EQ(move_axes(x, from, to).shape(), (Shape{5, 3, 2, 4}));
  EXPECT_EQ(move_axes(x, {}, {}).shape(), x.shape());
  EXPECT_THAT(error_of<ShapeError>([&] { move_axes(x, from, once); }),
              HasSubstr("source names 2 axes and destination 1 places"));
  EXPECT_THAT(error_of<ShapeError>([&] { move_axes(x, from, twice); }),
              HasSubstr("moveaxis: an axis is given twice"));
}

TEST(Rearrange, NewAxesAreCountedInTheResult) {
  const int64_t places[] = {-1, 0}, far[] = {5};
  EXPECT_EQ(unsqueeze(counted({2, 3}), places).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_THAT(error_of<ShapeError>([&] { unsqueeze(counted({2}), far); }),
              HasSubstr("expand_dims: axis 5"));
  const std::vector<int64_t> many(kMaxDims, 0);
  EXPECT_THAT(error_of<ShapeError>([&] { unsqueeze(counted({2}), many); }), HasSubstr("beyond"));
}

TEST(Rearrange, PartsAndBroadcastArraysAreViews) {
  const Tensor x = counted({2, 3});
  const std::vector<Tensor> columns = unstack(x, 1);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_THAT(values<int64_t>(columns[2]), ElementsAre(2, 5));
  EXPECT_EQ(columns[0].storage(), x.storage());
  const Tensor both[] = {counted({3}), counted({2, 1})};
  const std::vector<Tensor> wide = broadcast_arrays(both);
  EXPECT_THAT(values<int64_t>(wide[1]), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_EQ(wide[0].shape(), (Shape{2, 3}));
}

TEST(Rearrange, PartsOfComplexNumbersLieInTheirMemory) {
  using Number = std::complex<float>;
  const Tensor x = list<Number>({{1, 2}, {3, 4}}, DType::kComplex64);
  EXPECT_THAT(values<float>(real_part(x)), ElementsAre(1, 3));
  EXPECT_THAT(values<float>(imaginary_part(x)), ElementsAre(2, 4));
  fill(imaginary_part(x), 7);
  EXPECT_EQ(x.data<Number>()[1], Number(3, 7));
  EXPECT_THAT(error_of<DTypeError>([] { imaginary_part(counted({1})); }), HasSubstr("int64"));
}

TEST(Rearrange, EachElementHasItsOwnCount) {
  const int64_t counts[] = {2, 0, 1}, negative[] = {1, -1, 1};
  EXPECT_THAT(values<int64_t>(repeat(counted({2, 3}), counts, 1)), ElementsAre(0, 0, 2, 3, 3, 5));
  EXPECT_THAT(error_of<ShapeError>([&] {
                repeat(counted({2, 3}), counts, 0);
              }),
              HasSubstr("3 counts do not fit the 2"));
  EXPECT_THAT(error_of<ShapeError>([&] { repeat(counted({3}), negative, 0); }), HasSubstr("-1"));
}

TEST(Rearrange, TrianglesOfAnyDiagonal) {
  const Tensor x = reshape(list<int64_t>({1, 2, 3, 4, 5, 6}, DType::kInt64), {2, 3});
  EXPECT_THAT(values<int64_t>(tril(x)), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(values<int64_t>(triu(x, 1)), ElementsAre(0, 2, 3, 0, 0, 6));
  for (const int64_t k : {int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(test::same_bits(tril(x, k), x));
    EXPECT_TRUE(test::same_bits(triu(x, -k), x));
  }
}

TEST(Rearrange, DifferencesOfNeighbours) {
  const Tensor x = list<int64_t>({1, 4, 9, 16}, DType::kInt64);
  EXPECT_THAT(values<int64_t>(diff(x)), ElementsAre(3, 5, 7));
  EXPECT_THAT(values<int64_t>(diff(x, 2)), ElementsAre(2, 2));
  EXPECT_EQ(diff(x, 100).size(), 0);
  EXPECT_THAT(error_of<ExecutionError>([&] { diff(x, -1); }), HasSubstr("at least 0"));
}

TEST(Rearrange, RunningSumsMayBeginWithZero) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT(values<int64_t>(cumulative_sum(x, -1)), ElementsAre(0, 1, 3, 3, 7, 12));
  const Tensor longer = cumulative_sum(x, 0, {.dtype = DType::kInt8, .includes_initial = true});
  EXPECT_EQ(longer.shape(), Shape({3, 3}));
  EXPECT_THAT(values<int8_t>(longer), ElementsAre(0, 0, 0, 0, 1, 2, 3, 5, 7));
  EXPECT_THAT(values<int64_t>(cumulative_sum(counted({0}), {}, {.includes_initial = true})),
              ElementsAre(0));
  EXPECT_THAT(error_of<ShapeError>([&] { cumulative_sum(x); }), HasSubstr("axis is needed"));
  EXPECT_THAT(error_of<ShapeError>([&] { cumulative_sum(x, 2); }),
              HasSubstr("cumulative_sum: axis 2"));
}

TEST(Rearrange, NonzerosAreCountedOverAxes) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(count_nonzero(x), 5);
  EXPECT_THAT(values<int64_t>(count_nonzero(x, {0})), ElementsAre(1, 2, 2));
  EXPECT_EQ(count_nonzero(x, {-1}, true).shape(), Shape({2, 1}));
  EXPECT_THAT(error_of<ShapeError>([&] { count_nonzero(x, {2}); }),
              HasSubstr("count_nonzero: axis 2"));
}

TEST(Rearrange, MatricesAreTransposedInPlace) {
  const Tensor x = counted({2, 1, 3}), turned = matrix_transpose(x);
  EXPECT_EQ(turned.shape(), Shape({2, 3, 1}));
  EXPECT_EQ(turned.data(), x.data());
  EXPECT_THAT(error_of<ShapeError>([] { matrix_transpose(counted({3})); }),
              HasSubstr("matrix_transpose: x has shape (3,)"));
}

TEST(Rearrange, DecimalPlaces) {
  const Tensor x = list<double>({2.675, -15, 25, 1e308}, DType::kFloat64);
  EXPECT_THAT(values<double>(round_decimals(x, 2)), ElementsAre(2.68, -15, 25, 1e308));
  const Tensor tens = list<double>({2.675, -15, 25}, DType::kFloat64);
  EXPECT_THAT(values<double>(round_decimals(tens, -1)), ElementsAre(0, -20, 20));
  const auto most = std::numeric_limits<uint64_t>::max();
  const Tensor large = list<uint64_t>({most / 10 * 9, 4}, DType::kUInt64);
  EXPECT_THAT(values<uint64_t>(round_decimals(large, -18)),
              ElementsAre(uint64_t{17'000'000'000'000'000'000U}, 0));
}

TEST(Rearrange, PlacesAmongSortedElements) {
  const Tensor sorted = list<double>({1, 2, 2, 3}, DType::kFloat64);
  const Tensor wanted = list<int64_t>({2, 0, 9}, DType::kInt64);
  EXPECT_THAT(values<int64_t>(searchsorted(sorted, wanted)), ElementsAre(1, 0, 4));
  EXPECT_THAT(values<int64_t>(searchsorted(sorted, wanted, true)), ElementsAre(3, 0, 4));
  EXPECT_THAT(error_of<ShapeError>([&] {
                searchsorted(counted({2, 2}), wanted);
              }),
              HasSubstr("needs 1 dimension"));
}

}  // namespace
}  // namespace cuop
