#include "cuop/dist/exec/rank_machine.h"

#include <map>
#include <mutex>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/tune/clock.h"

namespace cuop::dist {

namespace {

/// Bytes a second from one GPU to another, or within one.
double measured_link(Device from, Device to) {
  constexpr int64_t kBytes = 16 << 20;
  const Tensor source = empty({kBytes}, DType::kUInt8, from);
  const Tensor target = empty({kBytes}, DType::kUInt8, to);
  const auto copy = [&] { copy_across(target, source); };
  copy();  // which opens the way
  const double seconds = tune::clock_for(to)->time_ms(copy) / 1e3;
  return seconds > 0.0 ? static_cast<double>(kBytes) / seconds : Machine{}.link_bandwidth;
}

double link_bandwidth(Device from, Device to) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<int, int>, double>;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace({from.index, to.index}, 0.0);
  if (is_new) {
    try {
      found->second = measured_link(from, to);
    } catch (...) {
      known.erase(found);
      throw;
    }
  }
  return found->second;
}

}  // namespace

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
