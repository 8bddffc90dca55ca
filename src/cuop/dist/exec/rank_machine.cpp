#include "cuop/dist/exec/rank_machine.h"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/device_properties.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/stream.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/index/view.h"
#include "cuop/tune/clock.h"

namespace cuop::dist {

namespace {

/// By what a copy of so many bytes takes longer than one of a quarter of them: streams of two
/// devices wait for each other as long as some megabytes take. MemoryError where there is no room
/// for them.
double measured_link(Device from, Device to, int64_t bytes) {
  const Tensor source = empty({bytes}, DType::kUInt8, from);
  const Tensor target = empty({bytes}, DType::kUInt8, to);
  const auto clock = tune::clock_for(to);
  const auto seconds_of = [&](int64_t part) {
    const Tensor some = slice(source, 0, 0, part), there = slice(target, 0, 0, part);
    const auto copy = [&] { copy_across(there, some); };
    copy();  // which opens the way
    return std::min(clock->time_ms(copy), clock->time_ms(copy)) / 1e3;
  };
  const double whole = seconds_of(bytes), more = whole - seconds_of(bytes / 4);
  // On a busy machine a start may have been slow once.
  return 0.75 * static_cast<double>(bytes) / std::max({more, whole / 4, 1e-9});
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

constexpr int64_t kHostLinkBytes = 64 << 20;

/// Where nothing is measured.
HostLink assumed_link(Device device, HostPages pages) {
  return {.stretch = stretch_seconds(device, pages)};
}

/// By copies of so many bytes. MemoryError where there is no room for them.
HostLink host_link_by(Device device, HostPages pages, int64_t bytes) {
  // Pages of the host that nobody has written are all the same one.
  const auto on_host = [&](int64_t value) {
    const Tensor ordinary = full({bytes}, value, DType::kUInt8);
    return pages == HostPages::kLocked ? pin_memory(ordinary, device) : ordinary;
  };
  const Tensor sent = on_host(1), received = on_host(2);
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
    std::future<void> aside = std::async(std::launch::async, up);
    down();
    aside.get();
  });
  const double hidden = upload + download - both;
  const auto rate = [bytes](double seconds) { return static_cast<double>(bytes) / seconds; };
  return {rate(upload), rate(download), std::clamp(hidden / std::min(upload, download), 0.0, 1.0),
          stretch_seconds(device, pages)};
}

/// The same; where many threads copy ordinary pages, their start is a good part of a short copy's
/// time, and longer ones are timed.
HostLink measured_host_link(Device device, HostPages pages, int64_t bytes) {
  constexpr double kLong = 0.01;  // seconds
  constexpr int64_t kLonger = 4;
  const HostLink link = host_link_by(device, pages, bytes);
  const bool is_long = static_cast<double>(bytes) > kLong * link.upload;
  if (pages == HostPages::kLocked || is_long) return link;
  try {
    return host_link_by(device, pages, kLonger * bytes);
  } catch (const MemoryError&) {
    return link;
  }
}

/// Figures of copies by the ends of their way, measured when they are first asked for.
template <class Key, class Figures>
class MeasuredOnce {
 public:
  /// measure(bytes) of copies of so many bytes, which raises MemoryError where there is no room for
  /// them. A program that may use little memory gets rougher figures, for this call alone, or what
  /// is assumed.
  template <class Measure>
  Figures get(const Key& key, int64_t most_bytes, const Figures& assumed, const Measure& measure) {
    const auto turn = lock_unless_mine(measuring_);
    if (const auto known = find(key)) return *known;
    return measured(key, most_bytes, assumed, measure);
  }
  std::optional<Figures> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    return found != known_.end() ? std::optional(found->second) : std::nullopt;
  }
  /// Beside others that measure.
  template <class Measure>
  Figures measured(const Key& key, int64_t most_bytes, const Figures& assumed,
                   const Measure& measure) {
    for (int64_t bytes = most_bytes; bytes >= 4096; bytes /= 8) {
      try {
        const Figures figures = measure(bytes);
        const std::lock_guard lock(mutex_);
        if (bytes == most_bytes) known_[key] = figures;
        return figures;
      } catch (const MemoryError&) {
        continue;
      }
    }
    return assumed;
  }

 private:
  InterruptibleMutex measuring_{"the speed of copies"};
  ForkMutex mutex_;  ///< of what follows
  std::map<Key, Figures> known_;
};

}  // namespace

double stretch_seconds(Device device, HostPages pages) {
  if (device.is_cpu()) return 2e-9;
  // As measured on an H200's host of 16 cores, with rows of 1 to 16 KiB at a pitch of 128 KiB:
  // threads pack and unpack them, page-locked ones are the copy engine's.
  return pages == HostPages::kLocked ? 3e-8 : 5e-8;
}

double link_bandwidth(Device from, Device to) {
  using Place = std::pair<DeviceType, int>;
  static auto& links = *new MeasuredOnce<std::pair<Place, Place>, double>;
  return links.get({{from.type, from.index}, {to.type, to.index}}, 64 << 20,
                   Machine{}.link_bandwidth,
                   [&](int64_t bytes) { return measured_link(from, to, bytes); });
}

HostLink host_link(Device device, HostPages pages) {
  if (device.is_cpu()) {  // where copies take turns
    const double bandwidth = link_bandwidth(device, device);
    return {bandwidth, bandwidth, 0, stretch_seconds(device)};
  }
  static auto& links = *new MeasuredOnce<std::pair<int, HostPages>, HostLink>;
  return links.get({device.index, pages}, kHostLinkBytes, assumed_link(device, pages),
                   [&](int64_t bytes) { return measured_host_link(device, pages, bytes); });
}

HostLink host_link(Communicator& comm, Device device, HostPages pages) {
  if (comm.size() == 1 || device.is_cpu()) return host_link(device, pages);
  static auto& links = *new MeasuredOnce<std::tuple<int, HostPages, int>, HostLink>;
  const std::tuple key{device.index, pages, comm.size()};
  const std::optional<HostLink> known = links.find(key);
  if (agree_all(comm, known.has_value())) return *known;
  comm.barrier();  // from here on all copy at a time
  return links.measured(key, kHostLinkBytes, assumed_link(device, pages),
                        [&](int64_t bytes) { return measured_host_link(device, pages, bytes); });
}

Machine local_machine() { return Machine::host(backend::thread_count()); }

Machine rank_machine(Device device, bool is_linked) {
  if (device.is_cpu()) return local_machine();
  const backend::DeviceProperties& gpu = backend::runtime(device).properties();
  Machine machine =
      Machine::gpu(gpu.multiprocessors, gpu.clock_khz, gpu.memory_clock_khz, gpu.memory_bus_bits);
  if (is_linked) {
    const int count = backend::device_count(device.type);
    machine.link_bandwidth = link_bandwidth(device, {device.type, (device.index + 1) % count});
  }
  return machine;
}

}  // namespace cuop::dist
