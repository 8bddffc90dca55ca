#include "tests/simulator/device.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "tests/simulator/settings.h"

namespace cuop::simulator {

namespace {

/// The memory of an H100 would be more than the machines have that run the tests.
constexpr size_t kMemory = size_t{8} << 30;

struct Device {
  std::atomic<Result> error = Result::kSuccess;
  std::atomic<unsigned> reached_by = 0;
};

std::array<Device, kMaxSimulated>& devices() {
  static auto* made = [] {
    auto* all = new std::array<Device, kMaxSimulated>;
    for (size_t i = 0; i < all->size(); ++i) {
      (*all)[i].reached_by = 1u << i;
      set_total(static_cast<int>(i), kMemory);
    }
    return all;
  }();
  return *made;
}
Device& device_at(int device) { return devices()[static_cast<size_t>(device)]; }

thread_local int current = -1;

}  // namespace

int device_count() {
  static const int count = [] {
    devices();
    return static_cast<int>(std::clamp<int64_t>(settings().devices, 0, kMaxSimulated));
  }();
  return count;
}

bool is_device(int device) { return device >= 0 && device < device_count(); }

int capability() { return 90; }

int attribute(DeviceAttribute which, int device) {
  switch (which) {  // of an H100, but for its memory
    case DeviceAttribute::kMaxThreadsPerBlock:
      return 1024;
    case DeviceAttribute::kMaxGridX:
      return 0x7fffffff;
    case DeviceAttribute::kMaxGridY:
    case DeviceAttribute::kMaxGridZ:
      return 65535;
    case DeviceAttribute::kMaxSharedMemoryPerBlock:
      return 48 << 10;
    case DeviceAttribute::kMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case DeviceAttribute::kMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case DeviceAttribute::kReservedSharedMemoryPerBlock:
      return 1 << 10;
    case DeviceAttribute::kWarpSize:
      return 32;
    case DeviceAttribute::kMaxRegistersPerBlock:
    case DeviceAttribute::kMaxRegistersPerMultiprocessor:
      return 65536;
    case DeviceAttribute::kClockKhz:
      return 1'980'000;
    case DeviceAttribute::kMultiprocessorCount:
      return 132;
    case DeviceAttribute::kMemoryClockKhz:
      return 2'619'000;
    case DeviceAttribute::kMemoryBusBits:
      return 5120;
    case DeviceAttribute::kL2CacheBytes:
      return 50 << 20;
    case DeviceAttribute::kMaxThreadsPerMultiprocessor:
      return 2048;
    case DeviceAttribute::kMaxBlocksPerMultiprocessor:
      return 32;
    case DeviceAttribute::kUnifiedAddressing:
    case DeviceAttribute::kEccEnabled:
    case DeviceAttribute::kVirtualMemoryManagement:
    case DeviceAttribute::kPosixFileDescriptors:
    case DeviceAttribute::kMemoryPools:
    case DeviceAttribute::kHostRegister:
      return 1;
    case DeviceAttribute::kComputeMode:
    case DeviceAttribute::kPciDomainId:
    case DeviceAttribute::kPciDeviceId:
    case DeviceAttribute::kCooperativeLaunch:
      return 0;
    case DeviceAttribute::kPciBusId:
      return device + 1;
    case DeviceAttribute::kComputeCapabilityMajor:
      return capability() / 10;
    case DeviceAttribute::kComputeCapabilityMinor:
      return capability() % 10;
  }
  return -1;
}

ContextHandle context_of(int device) { return reinterpret_cast<ContextHandle>(&device_at(device)); }

int device_of(ContextHandle context) {
  for (int i = 0; i < device_count(); ++i) {
    if (context_of(i) == context) return i;
  }
  return -1;
}

int current_device() { return current; }
void set_current_device(int device) { current = device; }

void lose(int device, Result error) {
  Result none = Result::kSuccess;
  device_at(device).error.compare_exchange_strong(none, error);
}
bool is_lost(int device) { return error_of(device) != Result::kSuccess; }
Result error_of(int device) { return device_at(device).error; }

unsigned reached_by(int owner) { return device_at(owner).reached_by; }

bool enable_peer(int device, int owner) {
  const unsigned bit = 1u << device;
  if ((device_at(owner).reached_by.fetch_or(bit) & bit) != 0) return false;
  AddressSpace::instance().add_reach(owner, device, false);
  return true;
}

}  // namespace cuop::simulator
