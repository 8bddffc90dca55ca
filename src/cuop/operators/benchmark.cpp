#include "cuop/operators/benchmark.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/jit/roof.h"

namespace cuop {

namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace

BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options) {
  if (options.num_runs < 1 || options.warmup_runs < 0) {
    throw ExecutionError(cat("benchmark: num_runs is ", options.num_runs, " and warmup_runs ",
                             options.warmup_runs,
                             "; at least 1 run and no negative warm-up are needed"));
  }
  backend::Runtime& device = backend::runtime(backend::current_device());
  for (int64_t i = 0; i < options.warmup_runs; ++i) call();
  device.synchronize();
  std::vector<double> times;
  for (int64_t i = 0; i < options.num_runs; ++i) {
    const int64_t start = trace::now_ns();
    call();
    device.synchronize();
    times.push_back(static_cast<double>(trace::now_ns() - start) * 1e-6);
  }
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  double squares = 0.0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  BenchmarkResult result;
  result.mean_time_ms = std::clamp(mean, times.front(), times.back());  // rounding may leave them
  result.std_time_ms = std::sqrt(squares / count);
  result.min_time_ms = times.front();
  result.max_time_ms = times.back();
  result.median_time_ms = median_of_sorted(times);
  result.num_runs = options.num_runs;
  result.warmup_runs = options.warmup_runs;
  return result;
}

void add_rates(BenchmarkResult& result, const Cost& cost, DType dtype) {
  const double nanoseconds = std::max(result.median_time_ms * 1e6, 1.0);  // the clock's step
  result.gflops = cost.flops / nanoseconds;
  result.bandwidth_gb_s = static_cast<double>(cost.bytes) / nanoseconds;
  result.percent_of_roof = percent_of_roof(cost, nanoseconds * 1e-6, dtype);
}

std::string to_text(const BenchmarkResult& result) {
  std::string text = cat("mean ", result.mean_time_ms, " ms, std ", result.std_time_ms, " ms\nmin ",
                         result.min_time_ms, " ms, median ", result.median_time_ms, " ms, max ",
                         result.max_time_ms, " ms\n", result.num_runs, " runs after ",
                         result.warmup_runs, " to warm up\n");
  if (result.bandwidth_gb_s > 0) {
    text += cat(result.gflops, " GFLOP/s, ", result.bandwidth_gb_s, " GB/s, ",
                result.percent_of_roof, " % of the roof\n");
  }
  return text;
}

}  // namespace cuop
