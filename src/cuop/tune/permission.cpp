#include "cuop/tune/permission.h"

#include <atomic>

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
  const Stream stream = current_stream(device);
  backend::Runtime& runtime = backend::runtime(device);
  if (runtime.is_recording(stream)) return "a graph is being captured";
  if (!is_asked && !runtime.is_idle(stream)) return "the device is busy";
  return "";
}

}  // namespace cuop::tune
