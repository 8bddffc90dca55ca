// Objects of libraries that serve one thread at a time, such as handles.
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuop/core/device.h"

namespace cuop::backend::cuda {

/// Those that nobody uses, by device.
template <class Object>
class IdleObjects {
 public:
  /// One for the time of its life: that which was put back last, so that a program of one thread
  /// meets its own again; else what make() returns.
  class Lease {
   public:
    template <class Make>
    Lease(IdleObjects& idle, Device device, Make&& make)
        : idle_(idle), device_(device), object_(idle.take(device, make)) {}
    ~Lease() { idle_.put_back(device_, std::move(object_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    const Object& get() const { return object_; }

   private:
    IdleObjects& idle_;
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

  std::mutex mutex_;
  std::unordered_map<int, std::vector<Object>> idle_;
};

}  // namespace cuop::backend::cuda
