#include "cuop/backend/memory_debugging.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/memory/current.h"

namespace cuop::backend {

namespace {

/// Bytes of any device, looked at through copies.
class RuntimeBytes final : public memory::ByteAccess {
 public:
  void fill(void* data, int value, int64_t bytes, Stream stream) override {
    runtime(stream.device).fill_bytes(data, value, bytes, stream);
  }
  int64_t find_other(const void* data, int value, int64_t bytes, Stream stream) override {
    constexpr int64_t kPiece = int64_t{1} << 20;
    std::vector<unsigned char> piece(static_cast<size_t>(std::min(bytes, kPiece)));
    memory::HostBytes host;
    for (int64_t at = 0; at < bytes; at += kPiece) {
      const int64_t size = std::min(kPiece, bytes - at);
      runtime(stream.device)
          .copy(piece.data(), static_cast<const std::byte*>(data) + at, size, stream);
      const int64_t other = host.find_other(piece.data(), value, size, {});
      if (other >= 0) return at + other;
    }
    return -1;
  }
};

/// A device's guard, or null; the CPU's stands behind those of the GPUs. Never destroyed: blocks
/// that came from it go back to it.
std::array<std::atomic<memory::GuardResource*>, kMaxDevices + 1> guards{};

std::atomic<memory::GuardResource*>& guard_of(Device device) {
  return guards.at(device.is_cpu() ? size_t{kMaxDevices} : static_cast<size_t>(device.index));
}

memory::GuardResource& make_guard(Device device) {
  static auto& mutex = *new ForkMutex;
  // Never destroyed: threads may compute while the process ends.
  static auto& host_bytes = *new memory::HostBytes;
  static auto& device_bytes = *new RuntimeBytes;
  memory::MemoryResource& upstream = memory::device_resource(device);
  memory::ByteAccess* access = &device_bytes;
  if (device.is_cpu()) access = &host_bytes;
  const std::lock_guard lock(mutex);
  std::atomic<memory::GuardResource*>& guard = guard_of(device);
  if (guard == nullptr) guard = new memory::GuardResource(upstream, *access);
  return *guard;
}

}  // namespace

void set_memory_debugging(Device device, bool is_on) {
  runtime(device);  // a device that is absent is said at once
  memory::GuardResource* guard = is_on ? &make_guard(device) : guard_of(device).load();
  if (guard != nullptr && is_on) guard->set_holding(true);
  memory::set_current_resource(device, is_on ? guard : nullptr);
  if (guard != nullptr && !is_on) guard->set_holding(false);
}

bool is_memory_debugging(Device device) {
  memory::GuardResource* guard = guard_of(device);
  return guard != nullptr && &memory::whole_resource(device) == guard;
}

bool is_memory_debugging() {
  return std::any_of(guards.begin(), guards.end(), [](const auto& guard) {
    return guard != nullptr && is_memory_debugging(guard.load()->device());
  });
}

memory::MemoryResource& counted_resource(Device device) {
  memory::GuardResource* guard = guard_of(device);
  return guard != nullptr ? *guard : memory::whole_resource(device);
}

std::vector<std::string> check_memory(Device device) {
  memory::GuardResource* guard = guard_of(device);
  return guard == nullptr ? std::vector<std::string>() : guard->check();
}

std::vector<memory::GuardResource::Leak> memory_leaks(Device device) {
  memory::GuardResource* guard = guard_of(device);
  return guard == nullptr ? std::vector<memory::GuardResource::Leak>() : guard->leaks();
}

}  // namespace cuop::backend
