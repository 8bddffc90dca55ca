// Waits for what another thread does that takes long, which end when the user interrupts
// (core/interrupt.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>

#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"

namespace cuop {

/// Held by one thread at a time, for std::lock_guard. Whoever waits for it may be interrupted,
/// which throws Interrupted: for locks that are held while something is measured or compiled.
class InterruptibleMutex : NonCopyable {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    wait_interruptibly(is_free_, lock, std::chrono::steady_clock::time_point::max(),
                       [this] { return !is_held_; });
    is_held_ = true;
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    is_free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_free_;
  bool is_held_ = false;
};

/// Waits until the result is there; Interrupted when the user does not want to wait for it. The
/// work goes on then, and the future can be asked again.
template <class Result>
void wait_interruptibly(const std::shared_future<Result>& result) {
  constexpr auto kLook = std::chrono::milliseconds(50);
  while (result.wait_for(kLook) != std::future_status::ready) check_interrupt();
}

}  // namespace cuop
