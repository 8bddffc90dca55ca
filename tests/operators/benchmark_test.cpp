#include "cuop/operators/benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/operators/products.h"
#include "cuop/operators/vectors.h"
#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

using testing::HasSubstr;

TEST(Benchmark, CountsItsCallsAndOrdersItsTimes) {
  int calls = 0;
  const BenchmarkResult result = benchmark(
      [&] {
        // Every run takes a time that clocks see, the last two by far the longest.
        std::this_thread::sleep_for(std::chrono::microseconds(++calls > 6 ? 20000 : 100));
      },
      {.num_runs = 6, .warmup_runs = 2});
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(result.num_runs, 6);
  EXPECT_EQ(result.warmup_runs, 2);
  EXPECT_GE(result.min_time_ms, 0.1);
  EXPECT_LE(result.min_time_ms, result.median_time_ms);
  EXPECT_LE(result.median_time_ms, result.max_time_ms);
  EXPECT_GE(result.max_time_ms, 20.0);
  EXPECT_GE(result.mean_time_ms, (4 * 0.1 + 2 * 20.0) / 6);
  EXPECT_LE(result.mean_time_ms, result.max_time_ms);
  EXPECT_GT(result.std_time_ms, 0.0);
  EXPECT_EQ(result.gflops, 0.0);
  EXPECT_THAT(to_text(result), HasSubstr("6 runs after 2 to warm up"));
}

TEST(Benchmark, OperatorsTellTheirRates) {
  Gemm<float> gemm;
  gemm.set_weight(ones({8, 8}));
  const Tensor c = zeros({8, 8});
  const BenchmarkResult result = benchmark(gemm, {.num_runs = 3}, ones({8, 8}), c);
  EXPECT_EQ(c.data<float>()[63], 8.0f);
  EXPECT_EQ(result.warmup_runs, 10);
  EXPECT_NEAR(result.gflops * result.median_time_ms * 1e6, 2 * 8 * 8 * 8, 1e-6);
  EXPECT_NEAR(result.bandwidth_gb_s * result.median_time_ms * 1e6, 3 * 256, 1e-6);
  EXPECT_GT(result.percent_of_roof, 0.0);
  EXPECT_THAT(to_text(result), HasSubstr("% of the roof"));
  EXPECT_GT(benchmark(Dot<double>(), {.num_runs = 1}, ones({4}, DType::kFloat64),
                      ones({4}, DType::kFloat64))
                .gflops,
            0.0);
}

/// Answers times that were written down before.
RunTimer timer_of(std::vector<RunTime> times) {
  return [times = std::move(times), next = size_t{0}](const std::function<void()>& call) mutable {
    call();
    return times[next++];
  };
}

TEST(Benchmark, TheGpusTimeIsItsMedianAndCountsForTheRates) {
  const BenchmarkOptions options{.num_runs = 4, .warmup_runs = 1};
  BenchmarkResult result = benchmark(
      [] {}, options, timer_of({{90.0, 90.0}, {4.0, 2.5}, {1.0, 0.5}, {3.0, 1.5}, {2.0, 1.0}}));
  EXPECT_DOUBLE_EQ(result.median_time_ms, 2.5);
  EXPECT_DOUBLE_EQ(result.min_time_ms, 1.0);
  EXPECT_DOUBLE_EQ(result.max_time_ms, 4.0);
  EXPECT_DOUBLE_EQ(result.std_time_ms, std::sqrt(1.25));
  ASSERT_TRUE(result.gpu_time_ms.has_value());
  EXPECT_DOUBLE_EQ(*result.gpu_time_ms, 1.25);
  add_rates(result, {2.5e6, 5'000'000}, {1e10, 1e10});
  EXPECT_DOUBLE_EQ(result.gflops, 2.0);
  EXPECT_DOUBLE_EQ(result.bandwidth_gb_s, 4.0);
  EXPECT_DOUBLE_EQ(result.percent_of_roof, 40.0);
  EXPECT_THAT(to_text(result), HasSubstr("GPU median 1.25 ms\n"));
}

TEST(Benchmark, OnTheCpuTheMedianCountsForTheRates) {
  BenchmarkResult result =
      benchmark([] {}, {.num_runs = 1, .warmup_runs = 0}, timer_of({{2.0, std::nullopt}}));
  EXPECT_FALSE(result.gpu_time_ms.has_value());
  add_rates(result, {2e6, 0}, {1e9, 1e9});
  EXPECT_DOUBLE_EQ(result.gflops, 1.0);
  EXPECT_DOUBLE_EQ(result.percent_of_roof, 100.0);
}

TEST(Benchmark, RefusesCountsAndPassesErrorsOn) {
  EXPECT_THROW(benchmark([] {}, {.num_runs = 0}), ExecutionError);
  EXPECT_THROW(benchmark([] {}, {.warmup_runs = -1}), ExecutionError);
  EXPECT_THROW(benchmark([] { throw ShapeError("test"); }), ShapeError);
  EXPECT_THROW(benchmark(Gemm<float>(), {}, ones({1, 1}), ones({1, 1})), ExecutionError);
}

}  // namespace
}  // namespace cuop
