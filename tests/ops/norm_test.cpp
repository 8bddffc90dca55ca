#include "cuop/ops/norm/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

TEST(LayerNorm, NormalisesOverTheTrailingShapeOfGamma) {
  const Tensor x = from_values<double>({2, 2}, {1.0, 3.0, 1e9, 1e9 + 2.0});
  const Tensor y = layer_norm(x, ones({2}, DType::kFloat64), {}, 0.0);
  for (const int row : {0, 1}) {
    EXPECT_NEAR(y.data<double>()[2 * row], -1.0, 1e-12);
    EXPECT_NEAR(y.data<double>()[2 * row + 1], 1.0, 1e-12);
  }
}

TEST(LayerNorm, NormalisesOverAllButTheBatchWithOneGammaAChannel) {
  const Tensor x = reshape(arange(0, 12, 1, DType::kFloat64), {1, 2, 6});
  const Tensor gamma = from_values<double>({2}, {1.0, 10.0});
  const Tensor y = layer_norm(x, gamma, gamma, 0.0);
  const double spread = std::sqrt(143.0 / 12.0);
  EXPECT_NEAR(y.data<double>()[0], -5.5 / spread + 1.0, 1e-12);
  EXPECT_NEAR(y.data<double>()[11], 55.0 / spread + 10.0, 1e-12);
}

TEST(LayerNorm, SaysBothRulesWhenNeitherFits) {
  const std::string message = test::error_of<Error>([] { layer_norm(ones({2, 3, 4}), ones({5})); });
  EXPECT_NE(message.find("trailing"), std::string::npos) << message;
  EXPECT_NE(message.find("x.shape[1]"), std::string::npos) << message;
  EXPECT_THROW(layer_norm(ones({2, 4}), ones({4}), ones({1})), ShapeError);
  EXPECT_THROW(layer_norm(ones({2, 4}), ones({4}, DType::kFloat64)), DTypeError);
  EXPECT_THROW(layer_norm(ones({2, 4}, DType::kInt32), ones({4}, DType::kInt32)), DTypeError);
  EXPECT_THROW(layer_norm(ones({2, 4}), ones({4}), {}, -1.0), ExecutionError);
}

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  const Tensor x = from_values<double>({1, 2}, {3.0, 4.0});
  const Tensor y = rms_norm(x, ones({2}, DType::kFloat64), 0.0);
  EXPECT_NEAR(y.data<double>()[0], 3.0 / std::sqrt(12.5), 1e-15);
  EXPECT_THROW(rms_norm(x, ones({3}, DType::kFloat64)), ShapeError);
}

TEST(BatchNorm, TakesRunningStatisticsAndDefaults) {
  const Tensor x = full({2, 3, 4}, 5.0, DType::kFloat64);
  EXPECT_EQ(batch_norm(x, {}, {.eps = 0.0}).data<double>()[7], 5.0);
  BatchNormParameters parameters;
  parameters.running_mean = full({3}, 1.0, DType::kFloat64);
  parameters.running_var = full({3}, 4.0, DType::kFloat64);
  parameters.gamma = full({3}, 3.0, DType::kFloat64);
  EXPECT_EQ(batch_norm(x, parameters, {.eps = 0.0}).data<double>()[7], 6.0);
}

TEST(BatchNorm, TrainsOnTheBatchAndMovesTheRunningStatistics) {
  const Tensor x = from_values<double>({4, 1}, {1.0, 2.0, 3.0, 6.0});
  BatchNormParameters parameters;
  parameters.running_mean = zeros({1}, DType::kFloat64);
  parameters.running_var = ones({1}, DType::kFloat64);
  const Tensor y = batch_norm(x, parameters, {.eps = 0.0, .momentum = 0.25, .is_training = true});
  EXPECT_NEAR(y.data<double>()[3], 3.0 / std::sqrt(3.5), 1e-15);
  EXPECT_NEAR(*parameters.running_mean.data<double>(), 0.75, 1e-15);
  EXPECT_NEAR(*parameters.running_var.data<double>(), 0.75 + 0.25 * 14.0 / 3.0, 1e-15);
}

TEST(BatchNorm, RefusesWhatDoesNotFit) {
  const Tensor x = ones({1, 3});
  BatchNormParameters parameters;
  parameters.beta = ones({2});
  EXPECT_THROW(batch_norm(x, parameters), ShapeError);
  EXPECT_THROW(batch_norm(ones({3}), {}), ShapeError);
  EXPECT_THROW(batch_norm(x, {}, {.is_training = true}), ShapeError);
  EXPECT_THROW(batch_norm(ones({2, 3}), {}, {.momentum = 2.0, .is_training = true}),
               ExecutionError);
  EXPECT_THROW(batch_norm(ones({2, 3}, DType::kInt8), {}), DTypeError);
}

}  // namespace
}  // namespace cuop
