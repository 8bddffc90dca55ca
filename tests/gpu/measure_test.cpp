#include <gmock/gmock.h>

#include <cmath>

#include "cuop/core/profile.h"
#include "cuop/jit/compile_service.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/benchmark.h"
#include "cuop/operators/tuned/jit.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/softmax/softmax.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"

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

/// What happens while it lives compiles its kernels.
class EmptyCache {
 public:
  double compile_ms() const { return jit::compile_statistics().compile_ms - compiled_ms_; }

 private:
  const test::OwnCache cache_;
  const double compiled_ms_ = jit::compile_statistics().compile_ms;
};

TEST_F(GpuMeasure, TheFirstCallsTimeIsTheKernelsAndNotTheCompilers) {
  const Tensor x = full({3, 7}, 2.0, DType::kFloat64, kGpu);
  const EmptyCache cache;
  set_profiling_output([](const std::string&) {});
  enable_profiling();
  // Three kernels, of which the later ones are compiled when the stream has had work.
  {
    const trace::Span span("three", "op");
    exp(x);
    softmax(x);
    sqrt(x);
  }
  const auto rows = profiling_rows();
  enable_profiling(false);
  set_profiling_output({});
  ASSERT_GT(cache.compile_ms(), 0.0) << "the kernel was loaded before, so the test shows nothing";
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0].total_ms, 0.0);
  EXPECT_LT(rows[0].total_ms, 0.5 * cache.compile_ms());
}

TEST_F(GpuMeasure, AWrappersFirstProfileIsTheKernelsAndNotTheCompilers) {
  const EmptyCache cache;
  Jit<Softmax<float>> softmax;
  JitConfig config;
  config.optimization_level = "O1";  // by rule: the call itself compiles
  softmax.set_jit_config(config);
  const Tensor x = ones({3, 70}, DType::kFloat32, kGpu);
  softmax.forward(x, zeros(x.shape(), x.dtype(), kGpu));
  const PerformanceProfile profile = softmax.profile();
  ASSERT_GT(cache.compile_ms(), 0.0);
  EXPECT_GT(profile.kernel_time_ms, 0.0);
  EXPECT_LT(profile.kernel_time_ms, 0.5 * cache.compile_ms());
  EXPECT_GT(profile.compilation_time_ms, 0.9 * cache.compile_ms());
  EXPECT_TRUE(std::isnan(profile.percent_of_roof)) << "reading a profile measures nothing";
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
