// Objects of which every GPU has one.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "cuop/core/device.h"
#include "cuop/core/fork_mutex.h"

namespace cuop {

/// Made when they are first asked for and never destroyed: who uses them may outlive all statics.
template <class T>
class OnePerDevice {
 public:
  /// The GPU's; `make()` returns a new one.
  template <class Make>
  T& get(Device device, Make&& make) {
    std::atomic<T*>& place = places_[static_cast<size_t>(device.index)];
    if (T* known = place) return *known;
    const std::lock_guard lock(mutex_);
    if (place == nullptr) place = make();
    return *place;
  }

 private:
  ForkMutex mutex_;
  std::array<std::atomic<T*>, kMaxDevices> places_{};
};

}  // namespace cuop
