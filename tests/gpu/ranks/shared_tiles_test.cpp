// Arrays of the host in tiles on several GPUs of one process, which share what they read.
#include <gmock/gmock.h>

#include "cuop/backend/runtime.h"
#include "cuop/dist/comm/self.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/executor/tiled_test.h"

namespace cuop::executor {
namespace {

using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT

constexpr int64_t kMiB = int64_t{1} << 20;

class GpuSharedTiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two CUDA GPUs";
  }
};

/// The call on all GPUs of the process, of which several read the second input.
void expect_shared(const TileOperation& operation, const std::vector<Tensor>& inputs,
                   const Tensor& expected, int64_t bytes, double tolerance) {
  const TiledOptions options = within(bytes);
  const Tensor result = run_tiled(dist::make_self_communicator(), operation, inputs, options);
  const TiledReport& report = *options.report;
  expect_close(result, expected, tolerance, operation.text);
  EXPECT_GT(report.plan.shared, 0) << report.plan.explain();
  EXPECT_GT(report.shared, 0) << report.plan.explain();
  EXPECT_LE(report.peak, bytes);
  EXPECT_EQ(report.halvings, 0);
}

TEST_F(GpuSharedTiles, AProductsOperandsComeOnce) {
  const Tensor a = host_noise({700, 1100}), b = host_noise({1100, 500}, DType::kFloat64, 2);
  const Tensor expected = cuop::matmul(a, b);
  for (const int64_t bytes : {12 * kMiB, 64 * kMiB}) {
    expect_shared(matmul_tiles(), {a, b}, expected, bytes, 1e-11);
  }
}

TEST_F(GpuSharedTiles, OperandsOfAConvolutionComeOnce) {
  const Tensor x = host_noise({130, 4100, 1, 1}), w = host_noise({128, 4100, 1, 1});
  const ConvOptions options;
  expect_shared(conv_tiles(options), {x, w}, cuop::conv2d(x, w, nullptr, options), 64 * kMiB,
                1e-10);
}

}  // namespace
}  // namespace cuop::executor
