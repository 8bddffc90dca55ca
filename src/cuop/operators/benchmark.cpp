#include "cuop/operators/benchmark.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double since_ms(int64_t start_ns) { return static_cast<double>(trace::now_ns() - start_ns) * 1e-6; }

}  // namespace

RunTimer run_timer(Device device) {
  backend::Runtime& runtime = backend::runtime(device);
  if (device.is_cpu()) {
    return [](const std::function<void()>& call) {
      const int64_t start = trace::now_ns();
      call();
      return RunTime{since_ms(start), std::nullopt};
    };
  }
  const std::shared_ptr<backend::Event> begin = runtime.create_event(true);
  const std::shared_ptr<backend::Event> end = runtime.create_event(true);
  return [=, &runtime](const std::function<void()>& call) {
    const Stream stream = current_stream(device);
    begin->record(stream);
    const int64_t start = trace::now_ns();
    call();
    end->record(stream);
    runtime.synchronize();
    return RunTime{since_ms(start), end->elapsed_ms(*begin)};
  };
}

BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options) {
  return benchmark(call, options, run_timer(options.device.value_or(backend::current_device())));
}

BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options,
                          const RunTimer& timer) {
  if (options.num_runs < 1 || options.warmup_runs < 0) {
    throw ExecutionError(cat("benchmark: num_runs is ", options.num_runs, " and warmup_runs ",
                             options.warmup_runs,
                             "; at least 1 run and no negative warm-up are needed"));
  }
  for (int64_t i = 0; i < options.warmup_runs; ++i) {
    check_interrupt();
    timer(call);
  }
  std::vector<double> times, gpu_times;
  for (int64_t i = 0; i < options.num_runs; ++i) {
    check_interrupt();
    const RunTime time = timer(call);
    times.push_back(time.host_ms);
    if (time.gpu_ms) gpu_times.push_back(*time.gpu_ms);
  }
  std::sort(times.begin(), times.end());
  std::sort(gpu_times.begin(), gpu_times.end());
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
  if (!gpu_times.empty()) result.gpu_time_ms = median_of_sorted(gpu_times);
  return result;
}

void add_rates(BenchmarkResult& result, const Cost& cost, const Roof& roof) {
  const double needed_ms = result.gpu_time_ms.value_or(result.median_time_ms);
  const double nanoseconds = std::max(needed_ms * 1e6, 1.0);  // the clock's step
  result.gflops = cost.flops / nanoseconds;
  result.bandwidth_gb_s = static_cast<double>(cost.bytes) / nanoseconds;
  result.percent_of_roof = percent_of_roof(cost, nanoseconds * 1e-6, roof);
}

std::string to_text(const BenchmarkResult& result) {
  std::string text = cat("mean ", result.mean_time_ms, " ms, std ", result.std_time_ms, " ms\nmin ",
                         result.min_time_ms, " ms, median ", result.median_time_ms, " ms, max ",
                         result.max_time_ms, " ms\n", result.num_runs, " runs after ",
                         result.warmup_runs, " to warm up\n");
  if (result.gpu_time_ms) text += cat("GPU median ", *result.gpu_time_ms, " ms\n");
  if (result.bandwidth_gb_s > 0) {
    text += cat(result.gflops, " GFLOP/s, ", result.bandwidth_gb_s, " GB/s, ",
                result.percent_of_roof, " % of the roof\n");
  }
  return text;
}

}  // namespace cuop
