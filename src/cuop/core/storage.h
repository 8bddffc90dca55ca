// Bytes on a device with one owner. A storage may be deferred: recorded work fills it when somebody
// first asks for its address.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "cuop/core/device.h"

namespace cuop {

class Storage {
 public:
  /// Memory that exists; `owner` keeps it alive and frees it. Read-only memory (a NumPy array that
  /// must not be written, a read-only file map) is refused as an output by every operator.
  Storage(void* data, int64_t nbytes, Device device, std::shared_ptr<void> owner,
          bool is_read_only = false);

  /// Memory that is filled on first use: `produce` must call `fulfil` on this storage.
  static std::shared_ptr<Storage> deferred(int64_t nbytes, Device device,
                                           std::function<void()> produce);
  void fulfil(void* data, std::shared_ptr<void> owner);
  bool is_deferred() const { return is_deferred_.load(std::memory_order_acquire); }

  /// The first byte; runs deferred work first. Null only when nbytes is 0.
  void* data();
  int64_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool is_read_only() const { return is_read_only_; }

 private:
  void* data_ = nullptr;
  int64_t nbytes_ = 0;
  Device device_;
  bool is_read_only_ = false;
  std::shared_ptr<void> owner_;
  std::atomic<bool> is_deferred_ = false;
  std::function<void()> produce_;
};

}  // namespace cuop
