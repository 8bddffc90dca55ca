#include "cuop/backend/cuda/peer_access.h"

#include <algorithm>

namespace cuop::backend::cuda {

namespace {

AccessDescription whole_access(DeviceId device) {
  return {{LocationType::kDevice, device}, AccessFlags::kReadWrite};
}

}  // namespace

Result PeerAccess::admit(DeviceId other, bool has_driver_pool) {
  // What is mapped meanwhile waits here or knows of the other; nothing is unmapped meanwhile.
  const std::lock_guard lock(mutex_);
  if (std::find(open_to_.begin(), open_to_.end(), other) != open_to_.end()) return Result::kSuccess;
  const Driver& d = driver();
  const AccessDescription access = whole_access(other);
  for (const auto& [address, bytes] : pieces_) {
    const Result result = d.mem_set_access(address, bytes, &access, 1);
    if (result != Result::kSuccess) return result;
  }
  if (has_driver_pool) {
    MemoryPoolHandle pool = nullptr;
    Result result = d.device_get_default_mem_pool(&pool, open_to_.front());
    if (result == Result::kSuccess) result = d.mem_pool_set_access(pool, &access, 1);
    if (result != Result::kSuccess) return result;
  }
  open_to_.push_back(other);
  return Result::kSuccess;
}

Result PeerAccess::open(void* address, int64_t bytes, int64_t piece) {
  const auto begin = reinterpret_cast<DevicePointer>(address);
  const auto unit = static_cast<size_t>(piece), size = static_cast<size_t>(bytes);
  std::vector<AccessDescription> access;
  {
    const std::lock_guard lock(mutex_);
    for (const DeviceId device : open_to_) access.push_back(whole_access(device));
    for (size_t at = 0; at < size; at += unit) pieces_[begin + at] = unit;
  }
  return driver().mem_set_access(begin, size, access.data(), access.size());
}

void PeerAccess::forget(void* address, int64_t bytes, int64_t piece) noexcept {
  const auto begin = reinterpret_cast<DevicePointer>(address);
  const std::lock_guard lock(mutex_);
  for (int64_t at = 0; at < bytes; at += piece) pieces_.erase(begin + static_cast<size_t>(at));
}

}  // namespace cuop::backend::cuda
