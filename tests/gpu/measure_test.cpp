#include <gmock/gmock.h>

#include "cuop/core/profile.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/benchmark.h"
#include "cuop/operators/jit/jit.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/softmax/softmax.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using GpuMeasure = GpuTest;

TEST_F(GpuMeasure, SpansGetTheTimeOfTheirStream) {
  const Tensor x = ones({64, 64}, DType::kFloat32, kGpu);
  softmax(x);
  trace::clear();
  trace::set_recording(true);
  softmax(x);
  trace::set_recording(false);
  int found = 0;
  for (const trace::Event& event : trace::events()) {
    if (event.category != "gpu" || event.name != "softmax") continue;
    ++found;
    EXPECT_GT(event.duration_ns, 0);
    EXPECT_LT(event.duration_ns, 1'000'000'000);
    EXPECT_EQ(event.stream, "cuda:0 default stream");
  }
  EXPECT_EQ(found, 1);
  trace::clear();
}

TEST_F(GpuMeasure, TheProfilerCountsByDevice) {
  const Tensor x = ones({64, 64}, DType::kFloat32, kGpu);
  std::string written;
  set_profiling_output([&](const std::string& text) { written += text; });
  enable_profiling();
  softmax(x);
  softmax(x);
  const auto rows = profiling_rows();
  enable_profiling(false);
  set_profiling_output({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].device, "cuda:0");
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_GT(rows[0].total_ms, 0.0);
  EXPECT_THAT(written, testing::HasSubstr("softmax_kernel: "));
}

TEST_F(GpuMeasure, BenchmarksAndProfilesTellGpuTime) {
  Jit<Relu<float>> relu;
  const Tensor x = ones({64, 64}, DType::kFloat32, kGpu),
               y = zeros({64, 64}, DType::kFloat32, kGpu);
  const BenchmarkResult result =
      benchmark([&] { relu.forward(x, y); }, {.num_runs = 3, .warmup_runs = 1, .device = kGpu});
  ASSERT_TRUE(result.gpu_time_ms.has_value());
  EXPECT_GT(*result.gpu_time_ms, 0.0);
  EXPECT_LE(*result.gpu_time_ms, result.max_time_ms);
  const PerformanceProfile profile = relu.profile();
  EXPECT_GT(profile.kernel_time_ms, 0.0);
  EXPECT_GT(profile.launch_overhead_ms, 0.0);
}

}  // namespace
}  // namespace cuop
