#include "cuop/ops/softmax/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(Softmax, RowsSumToOneWithoutOverflow) {
  const Tensor x = from_values<double>({2, 3}, {1000.0, 1001.0, 1002.0, -5.0, 0.0, -kInfinite});
  const Tensor y = softmax(x);
  const double* p = y.data<double>();
  EXPECT_NEAR(p[0] + p[1] + p[2], 1.0, 1e-15);
  EXPECT_NEAR(p[2] / p[1], std::exp(1.0), 1e-14);
  EXPECT_EQ(p[5], 0.0);
  EXPECT_NEAR(log_softmax(x).data<double>()[1], std::log(p[1]), 1e-14);
}

TEST(Softmax, RowsWithoutAMeaningAreNaN) {
  const Tensor x =
      from_values<double>({3, 2}, {-kInfinite, -kInfinite, kInfinite, 0.0, std::nan(""), 1.0});
  for (const Tensor& y : {softmax(x), log_softmax(x), transpose(softmax(transpose(x), 0))}) {
    for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(y.data<double>()[i])) << i;
  }
}

TEST(Softmax, AlongAnyAxisInPlaceAndIntoViews) {
  const Tensor x = reshape(arange(0, 24, 1, DType::kFloat64), {2, 3, 4});
  const Tensor expected = softmax(x, 1);
  EXPECT_NEAR(expected.data<double>()[8], 1.0 / (1.0 + std::exp(-4.0) + std::exp(-8.0)), 1e-15);
  const Tensor wide = zeros({2, 3, 8}, DType::kFloat64);
  const Tensor view = slice(wide, 2, 0, std::nullopt, 2);
  softmax(x, 1, &view);
  EXPECT_EQ(wide.data<double>()[16], expected.data<double>()[8]);
  EXPECT_EQ(wide.data<double>()[17], 0.0);
  softmax(x, 1, &x);
  EXPECT_EQ(x.data<double>()[8], expected.data<double>()[8]);
}

TEST(Softmax, RefusesWhatDoesNotFit) {
  const Tensor x = ones({4, 4});
  EXPECT_THROW(softmax(x, 2), ShapeError);
  EXPECT_THROW(softmax(ones({3}, DType::kInt32)), DTypeError);
  EXPECT_THROW(log_softmax(ones({3}, DType::kComplex64)), DTypeError);
  EXPECT_THROW(softmax(ones({0}, DType::kInt32)), DTypeError);  // nothing to do is no excuse
  const Tensor crossing = transpose(x);
  EXPECT_THROW(softmax(x, 0, &crossing), ExecutionError);
}

}  // namespace
}  // namespace cuop
