// How long a call takes: of any function, or of an operator object with its rates.
#pragma once

#include <concepts>
#include <functional>
#include <string>

#include "cuop/operators/operator.h"

namespace cuop {

struct BenchmarkOptions {
  int64_t num_runs = 100;    ///< timed one by one
  int64_t warmup_runs = 10;  ///< before them, not timed
};

struct BenchmarkResult {
  double mean_time_ms = 0.0;
  double std_time_ms = 0.0;  ///< of all runs, not of a sample
  double min_time_ms = 0.0;
  double max_time_ms = 0.0;
  double median_time_ms = 0.0;
  int64_t num_runs = 0;
  int64_t warmup_runs = 0;
  // From the median, where the cost of the call is known; else 0.
  double gflops = 0.0;
  double bandwidth_gb_s = 0.0;
  /// As PerformanceProfile has it: data in caches can exceed 100.
  double percent_of_roof = 0.0;
};

/// Times `call`, waiting for the current device after each run. ExecutionError for less than one
/// run or a negative warm-up; errors of the call are the call's.
BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options = {});
/// The rates that belong to a measured call of this cost, filled in. `dtype` is float32 or float64.
void add_rates(BenchmarkResult& result, const Cost& cost, DType dtype);
/// Times op.forward(arguments...).
template <std::derived_from<Operator> Op, class... Arguments>
BenchmarkResult benchmark(const Op& op, const BenchmarkOptions& options,
                          const Arguments&... arguments);
/// One line a figure.
std::string to_text(const BenchmarkResult& result);

// ---------------------------------------------------------------------------------------------

template <std::derived_from<Operator> Op, class... Arguments>
BenchmarkResult benchmark(const Op& op, const BenchmarkOptions& options,
                          const Arguments&... arguments) {
  BenchmarkResult result = benchmark([&] { op.forward(arguments...); }, options);
  if constexpr (requires { op.cost(arguments...); }) {
    add_rates(result, op.cost(arguments...), op.dtype());
  } else {
    add_rates(result, op.task(arguments...).cost, op.dtype());
  }
  return result;
}

}  // namespace cuop
