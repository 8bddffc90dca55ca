#include "cuop/dist/exec/rank_machine.h"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/stream.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
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

/// Seconds of the shortest of a few runs of work that is done when its call returns.
double shortest(const std::function<void()>& work) {
  constexpr int kRuns = 2;
  work();  // which opens the way
  tune::HostClock clock;
  double best = clock.time_ms(work);
  for (int run = 1; run < kRuns; ++run) best = std::min(best, clock.time_ms(work));
  return std::max(best / 1e3, 1e-9);
}

/// By copies of so many bytes. MemoryError where there is no room for them.
HostLink measured_host_link(Device device, int64_t bytes) {
  // Pages of the host that nobody has written are all the same one.
  const Tensor sent = full({bytes}, 1, DType::kUInt8), received = full({bytes}, 2, DType::kUInt8);
  const Tensor there = empty({bytes}, DType::kUInt8, device),
               back = empty({bytes}, DType::kUInt8, device);
  const backend::OwnedStream way_in(device), way_out(device);
  const auto up = [&] {
    const StreamScope scope(way_in.get());
    copy_across(there, sent);
    backend::runtime(device).synchronize(way_in.get());
  };
  const auto down = [&] {
    const StreamScope scope(way_out.get());
    copy_across(received, back);
  };
  const double upload = shortest(up), download = shortest(down);
  const double both = shortest([&] {
    const std::future<void> aside = std::async(std::launch::async, up);
    down();
    aside.wait();
  });
  const double hidden = upload + download - both;
  const auto rate = [bytes](double seconds) { return static_cast<double>(bytes) / seconds; };
  return {rate(upload), rate(download), std::clamp(hidden / std::min(upload, download), 0.0, 1.0)};
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

HostLink host_link(Device device) {
  if (device.is_cpu()) {  // where copies take turns
    const double bandwidth = link_bandwidth(device, device);
    return {bandwidth, bandwidth, 0.0};
  }
  static std::mutex mutex;
  static auto& known = *new std::map<int, HostLink>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device.index);
  if (found != known.end()) return found->second;
  constexpr int64_t kBytes = 64 << 20;
  // A program that may use little memory gets rougher figures, for this call alone.
  for (int64_t bytes = kBytes; bytes >= 4096; bytes /= 8) {
    try {
      const HostLink link = measured_host_link(device, bytes);
      if (bytes == kBytes) known[device.index] = link;
      return link;
    } catch (const MemoryError&) {
      continue;
    }
  }
  return {};
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
