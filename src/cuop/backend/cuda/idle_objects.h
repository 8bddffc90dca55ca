// Objects of libraries that serve one thread at a time, such as handles.
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuop/core/device.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/noncopyable.h"

namespace cuop::backend::cuda {

/// Those that nobody uses, by device.
template <class Object>
class IdleObjects {
 public:
  /// All of the process: they outlive what may still run at its end, and are never destroyed.
  static IdleObjects& instance() {
    static auto* objects = new IdleObjects;
    return *objects;
  }

  /// One for the time of its life: that which was put back last, so that a program of one thread
  /// meets its own again; else what make() returns.
  class Lease : NonCopyable {
   public:
    template <class Make>
    Lease(Device device, Make&& make) : device_(device), object_(instance().take(device, make)) {}
    ~Lease() { instance().put_back(device_, std::move(object_)); }

    const Object& get() const { return object_; }

   private:
    Device device_;
    Object object_;
  };

 private:
  template <class Make>
  Object take(Device device, Make& make) {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[device.index];
      if (!idle.empty()) {
        Object object = std::move(idle.back());
        idle.pop_back();
        return object;
      }
    }
    return make();
  }
  void put_back(Device device, Object object) {
    const std::lock_guard lock(mutex_);
    idle_[device.index].push_back(std::move(object));
  }

  ForkMutex mutex_;
  std::unordered_map<int, std::vector<Object>> idle_;
};

}  // namespace cuop::backend::cuda
