// How long a call takes: of any function, or of an operator object with its rates.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "cuop/backend/current_device.h"
#include "cuop/operators/operator.h"
#include "cuop/operators/tuned/roof.h"

namespace cuop {

struct BenchmarkOptions {
  int64_t num_runs = 100;    ///< timed one by one
  int64_t warmup_runs = 10;  ///< before them, not timed
  /// Whose work is waited for and timed. Empty: where the operator's tensors are, for other calls
  /// the current device.
  std::optional<Device> device = std::nullopt;
};

struct BenchmarkResult {
  double mean_time_ms = 0.0;
  double std_time_ms = 0.0;  ///< of all runs, not of a sample
  double min_time_ms = 0.0;
  double max_time_ms = 0.0;
  double median_time_ms = 0.0;
  int64_t num_runs = 0;
  int64_t warmup_runs = 0;
  /// Median of what the device's current stream needed, by its own events; empty on the CPU.
  std::optional<double> gpu_time_ms;
  // From gpu_time_ms, on the CPU from the median, where the cost of the call is known; else 0.
  double gflops = 0.0;
  double bandwidth_gb_s = 0.0;
  /// As PerformanceProfile has it: data in caches can exceed 100.
  double percent_of_roof = 0.0;
};

/// What one run took: until the device was done, and the stream's own time.
struct RunTime {
  double host_ms = 0.0;
  std::optional<double> gpu_ms;
};
/// Does the call and returns what it took once it is complete.
using RunTimer = std::function<RunTime(const std::function<void()>& call)>;
/// By the host's clock and, on a GPU, two events of the device's current stream.
RunTimer run_timer(Device device);

/// Times `call`, waiting for the device after each run. ExecutionError for less than one run or a
/// negative warm-up; errors of the call are the call's.
BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options = {});
/// The same by a given timer, which also does the warm-up.
BenchmarkResult benchmark(const std::function<void()>& call, const BenchmarkOptions& options,
                          const RunTimer& timer);
/// The rates that belong to a measured call of this cost, filled in.
void add_rates(BenchmarkResult& result, const Cost& cost, const Roof& roof);
/// Times op.forward(arguments...).
template <std::derived_from<Operator> Op, class... Arguments>
BenchmarkResult benchmark(const Op& op, const BenchmarkOptions& options,
                          const Arguments&... arguments);
/// One line a figure.
std::string to_text(const BenchmarkResult& result);

// ---------------------------------------------------------------------------------------------

namespace detail {
/// The device of the first tensor, else the current one.
inline Device device_of_call() { return backend::current_device(); }
template <class First, class... Rest>
Device device_of_call(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, Tensor>) return first.device();
  return device_of_call(rest...);
}
}  // namespace detail

template <std::derived_from<Operator> Op, class... Arguments>
BenchmarkResult benchmark(const Op& op, const BenchmarkOptions& options,
                          const Arguments&... arguments) {
  BenchmarkOptions chosen = options;
  if (!chosen.device) chosen.device = detail::device_of_call(arguments...);
  BenchmarkResult result = benchmark([&] { op.forward(arguments...); }, chosen);
  const auto cost = [&] {
    if constexpr (requires { op.cost(arguments...); }) {
      return op.cost(arguments...);
    } else {
      return op.task(arguments...).cost;
    }
  };
  add_rates(result, cost(), measured_roof(op.dtype(), *chosen.device));
  return result;
}

}  // namespace cuop
