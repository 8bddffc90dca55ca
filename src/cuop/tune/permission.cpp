#include "cuop/tune/permission.h"

#include <atomic>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"

namespace cuop::tune {

namespace {
std::atomic<bool>& frozen() {
  static std::atomic<bool> is_on = env().tune_frozen.value;
  return is_on;
}
}  // namespace

bool is_frozen() { return frozen(); }

void set_frozen(bool is_on) { frozen() = is_on; }

std::string measuring_obstacle(Device device, bool is_asked) {
  if (is_frozen()) return "the tuner is frozen";
  if (device.is_cpu()) return "";
  const Stream stream = current_stream(device);
  if (backend::cuda::is_capturing(stream)) return "a graph is being captured";
  if (!is_asked && !backend::runtime(device).is_idle(stream)) return "the device is busy";
  return "";
}

}  // namespace cuop::tune
