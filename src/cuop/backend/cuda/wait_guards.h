// Who is asked whether to believe what a device has computed: its streams may have waited for other
// processes, and gone on although those had died.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/core/device.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

class WaitGuard {
 public:
  virtual ~WaitGuard() = default;
  /// Throws when work of the device has gone on without what it waited for.
  virtual void check() = 0;
};

/// Of one device. Any thread may call.
class WaitGuards {
 public:
  void add(std::shared_ptr<WaitGuard> guard);
  void remove(const WaitGuard* guard);
  /// Behind each wait of the host for work of the device.
  void check();

 private:
  ForkMutex mutex_;
  std::vector<std::shared_ptr<WaitGuard>> all_;
  std::atomic<bool> has_some_ = false;
};

WaitGuards& wait_guards(Device device);

}  // namespace cuop::backend::cuda
