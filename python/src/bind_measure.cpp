// Measuring: the trace, the profiler, benchmarks and the roof. What users call is in
// cuop/measure.py.
#include "binders.h"
#include "callback.h"
#include "cuop/core/chrome_trace.h"
#include "cuop/core/profile.h"
#include "cuop/operators/benchmark.h"

namespace cuop::python {

namespace {

/// What cuop.benchmark returns. `cost` gives the operations and bytes of a call, where they are
/// known; it is asked after the call has shown that its arguments are good.
Record benchmark_call(const nb::callable& call, int64_t num_runs, int64_t warmup_runs,
                      const std::optional<nb::callable>& cost, Arg<DType> dtype,
                      Arg<Device> given) {
  const Device device = given;
  const DType measured_in = dtype;
  const auto run = [&call] {
    const nb::gil_scoped_acquire held;
    call();
  };
  BenchmarkResult measured = without_gil([&] {
    return benchmark(run, {.num_runs = num_runs, .warmup_runs = warmup_runs, .device = device});
  });
  Record result =
      record_of("mean_time_ms", measured.mean_time_ms, "std_time_ms", measured.std_time_ms,
                "min_time_ms", measured.min_time_ms, "max_time_ms", measured.max_time_ms,
                "median_time_ms", measured.median_time_ms, "num_runs", measured.num_runs,
                "warmup_runs", measured.warmup_runs, "gpu_time_ms", measured.gpu_time_ms);
  if (!cost) return result;
  const auto [flops, bytes] = nb::cast<std::pair<double, int64_t>>(nb::tuple((*cost)()));
  {
    const nb::gil_scoped_release released;
    add_rates(measured, {flops, bytes}, measured_roof(measured_in, device));
  }
  add_items(result, "gflops", measured.gflops, "bandwidth_gb_s", measured.bandwidth_gb_s,
            "percent_of_roof", measured.percent_of_roof);
  return result;
}

void bind_trace(Module& m) {
  m.def("set_trace_recording", &trace::set_recording, "on"_a,
        "Begins or ends the recording of spans, which `trace_json` gives; `profile` does both.");
  m.def("is_trace_recording", &trace::is_recording, "Whether spans are being recorded.");
  m.def("clear_trace", &trace::clear, "Forgets the spans that were recorded.");
  m.def(
      "trace_json", [] { return trace::to_chrome_json(trace::events()); }, Released(),
      "Recorded spans in Chrome's trace-event format; waits for the GPUs' part of them.");
}

void bind_profiler(Module& m) {
  m.def("_enable_profiling", &enable_profiling, "is_on"_a, Released());
  m.def("is_profiling", &is_profiling, "Whether operations tell their times.");
  m.def(
      "_set_profiling_output",
      [](nb::object function) {
        std::function<void(const std::string&)> write;
        if (!function.is_none()) {
          write = [held = shared_function(std::move(function))](const std::string& text) {
            call_shared(*held, "the output of profiling", text);
          };
        }
        const nb::gil_scoped_release released;
        set_profiling_output(std::move(write));
      },
      "function"_a.none(), nb::sig("def _set_profiling_output(function: Any) -> None"));
  m.def(
      "profiling_rows",
      [] {
        const auto rows = without_gil([] { return profiling_rows(); });
        return records_of(rows, [](const ProfileRow& row) {
          return record_of("name", row.name, "device", row.device, "calls", row.calls, "total_ms",
                           row.total_ms, "mean_ms", row.mean_ms, "share", row.share);
        });
      },
      "The profiler's table so far, the longest first: name, device, calls, total_ms, mean_ms and "
      "share (0 to 1) of each operation. Waits for GPUs.");
  m.def("profiling_summary", &profiling_summary, Released(),
        "The profiler's table so far as text. Waits for GPUs.");
}

}  // namespace

void bind_measure(Module& m) {
  bind_trace(m);
  bind_profiler(m);
  m.def("_benchmark", &benchmark_call, "call"_a, "num_runs"_a, "warmup_runs"_a, "cost"_a.none(),
        "dtype"_a, "device"_a,
        nb::sig("def _benchmark(call: Any, num_runs: int, warmup_runs: int, cost: Any, dtype: "
                "DTypeLike, device: DeviceLike) -> dict[str, Any]"));
  m.def(
      "measured_roof",
      [](Arg<DType> dtype, const OptionalDevice& device) {
        const Roof roof = measured_roof(*dtype, device_or_current(device));
        return std::pair{roof.flops_per_second, roof.bytes_per_second};
      },
      "dtype"_a = "float32", "device"_a = nb::none(), Released(),
      "(operations, bytes) a second that the device (default: the current one) reached in a large "
      "matrix product and copy; measured on the first call and kept in the cache directory.");
}

}  // namespace cuop::python
