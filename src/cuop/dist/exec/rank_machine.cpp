#include "cuop/dist/exec/rank_machine.h"

#include <map>
#include <mutex>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/tune/clock.h"

namespace cuop::dist {

namespace {

/// By copies of so many bytes. MemoryError where there is no room for them.
double measured_link(Device from, Device to, int64_t bytes) {
  const Tensor source = empty({bytes}, DType::kUInt8, from);
  const Tensor target = empty({bytes}, DType::kUInt8, to);
  const auto copy = [&] { copy_across(target, source); };
  copy();  // which opens the way
  const double seconds = tune::clock_for(to)->time_ms(copy) / 1e3;
  return seconds > 0.0 ? static_cast<double>(bytes) / seconds : Machine{}.link_bandwidth;
}

}  // namespace

double link_bandwidth(Device from, Device to) {
  static std::mutex mutex;
  using Place = std::pair<DeviceType, int>;
  static auto& known = *new std::map<std::pair<Place, Place>, double>;
  const std::lock_guard lock(mutex);
  const std::pair key{Place{from.type, from.index}, Place{to.type, to.index}};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  constexpr int64_t kBytes = 16 << 20;
  // A program that may use little memory gets rougher figures, for this call alone.
  for (int64_t bytes = kBytes; bytes >= 4096; bytes /= 8) {
    try {
      const double bandwidth = measured_link(from, to, bytes);
      if (bytes == kBytes) known[key] = bandwidth;
      return bandwidth;
    } catch (const MemoryError&) {
      continue;
    }
  }
  return Machine{}.link_bandwidth;
}

Machine local_machine() { return Machine::host(backend::thread_count()); }

Machine rank_machine(Device device, bool is_linked) {
  if (device.is_cpu()) return local_machine();
  const backend::cuda::DeviceProperties& gpu = backend::cuda::cuda_runtime(device).properties();
  Machine machine =
      Machine::gpu(gpu.multiprocessors, gpu.clock_khz, gpu.memory_clock_khz, gpu.memory_bus_bits);
  if (is_linked) {
    const int count = backend::device_count(device.type);
    machine.link_bandwidth = link_bandwidth(device, {device.type, (device.index + 1) % count});
  }
  return machine;
}

}  // namespace cuop::dist
