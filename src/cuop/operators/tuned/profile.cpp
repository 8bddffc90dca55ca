#include "cuop/operators/tuned/profile.h"

#include <algorithm>

namespace cuop {

PerformanceProfile profile_of(const CallRecord& call) {
  PerformanceProfile profile;
  const double running_ms = std::max(0.0, call.running_ms - call.compiling_ms);
  profile.launch_overhead_ms = std::max(0.0, call.before_ms);
  if (call.device.is_cpu()) {
    profile.kernel_time_ms = running_ms;
  } else {
    profile.launch_overhead_ms += running_ms;
    profile.kernel_time_ms = static_cast<double>(trace::stream_ns(call.work)) * 1e-6;
  }
  profile.execution_time = profile.launch_overhead_ms + profile.kernel_time_ms;
  profile.compilation_time_ms = call.choosing_ms + call.compiling_ms;
  profile.kernel_type = call.kernel_type;
  profile.precision = call.precision;
  profile.used_tensor_core = call.used_tensor_core;
  profile.no_effect = call.no_effect;
  if (profile.kernel_time_ms > 0.0) {
    profile.gflops = call.cost.flops / (profile.kernel_time_ms * 1e6);
    profile.bandwidth_gb_s = static_cast<double>(call.cost.bytes) / (profile.kernel_time_ms * 1e6);
  }
  return profile;
}

}  // namespace cuop
