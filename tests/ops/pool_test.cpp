#include "cuop/ops/pool/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;
using ::testing::ElementsAre;

Tensor image() { return from_values<float>({1, 1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}); }

TEST(Pool, WindowsStartInThePadding) {
  const PoolOptions options{.kernel = {2}, .padding = {1}};
  EXPECT_THAT(values<float>(max_pool2d(image(), options)), ElementsAre(1, 3, 4, 9, 11, 12));
}

TEST(Pool, PaddingCountsOrNot) {
  PoolOptions options{.kernel = {2}, .padding = {1}};
  EXPECT_THAT(values<float>(avg_pool2d(image(), options)),
              ElementsAre(0.25f, 1.25f, 1, 3.5f, 8.5f, 5));
  options.count_include_pad = false;
  EXPECT_THAT(values<float>(avg_pool2d(image(), options)), ElementsAre(1, 2.5f, 4, 7, 8.5f, 10));
}

TEST(Pool, GlobalPoolsFillEitherShape) {
  EXPECT_EQ(global_avg_pool(image()).shape(), (Shape{1, 1, 1, 1}));
  const Tensor out = zeros({1, 1});
  EXPECT_THAT(values<float>(global_avg_pool(image(), &out)), ElementsAre(6.5f));
  EXPECT_THAT(values<float>(global_max_pool(image(), &out)), ElementsAre(12));
}

TEST(Pool, IntegersKeepTheirMaximaAndAnswerMeansInFloat64) {
  const int64_t large = int64_t{1} << 62;
  const Tensor x = from_values<int64_t>({1, 1, 4}, {large, large + 1, -5, -2});
  const Tensor largest = max_pool1d(x, {.kernel = {2}});
  EXPECT_EQ(largest.dtype(), DType::kInt64);
  EXPECT_EQ(largest.data<int64_t>()[0], large + 1);
  EXPECT_EQ(largest.data<int64_t>()[1], -2);
  EXPECT_EQ(global_max_pool(x).data<int64_t>()[0], large + 1);
  const Tensor mean = avg_pool1d(x, {.kernel = {2}});
  EXPECT_EQ(mean.dtype(), DType::kFloat64);
  EXPECT_EQ(mean.data<double>()[1], -3.5);
  EXPECT_THROW(max_pool1d(cast(x, DType::kBool), {.kernel = {2}}), DTypeError);
}

TEST(Pool, AKernelBeyondAllImagesIsRefused) {
  EXPECT_THROW(max_pool2d(image(), {.kernel = {int64_t{1} << 40}, .padding = {int64_t{1} << 39}}),
               ShapeError);
}

TEST(Pool, GlobalPoolsOfImages) {
  EXPECT_THAT(values<float>(global_max_pool2d(image())), ElementsAre(12));
  EXPECT_THAT(values<float>(global_avg_pool2d(image())), ElementsAre(6.5f));
  EXPECT_EQ(global_avg_pool2d(image()).shape(), (Shape{1, 1, 1, 1}));
  EXPECT_THROW(global_max_pool2d(ones({1, 2, 3})), ShapeError);
  EXPECT_THROW(global_avg_pool2d(ones({1, 2, 3, 3, 3})), ShapeError);
}

TEST(Pool, AWindowThatCouldMissTheImageIsRefused) {
  EXPECT_THROW(max_pool2d(image(), {.kernel = {2}, .padding = {2}}), ShapeError);
  // Half an odd window rounds down: with padding 2 a window of 3 could lie in the padding alone.
  EXPECT_THROW(max_pool2d(image(), {.kernel = {3}, .padding = {2}}), ShapeError);
  EXPECT_THROW(avg_pool2d(image(), {.kernel = {1}, .padding = {1}}), ShapeError);
  EXPECT_NO_THROW(max_pool2d(image(), {.kernel = {3}, .padding = {1}}));
}

}  // namespace
}  // namespace cuop
