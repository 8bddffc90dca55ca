// Waits for what another thread does that takes long, which end when the user interrupts
// (core/interrupt.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <limits>
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

/// Waits until the result is there, or so many seconds; whether it is there. Interrupted when the
/// user does not want to wait for it. The work goes on in either case, and the future can be asked
/// again.
template <class Result>
bool wait_interruptibly(const std::shared_future<Result>& result,
                        double seconds = std::numeric_limits<double>::infinity()) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kLook(0.05);
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const Seconds left = Seconds(seconds) - (std::chrono::steady_clock::now() - start);
    const Seconds look = std::clamp(left, Seconds(0), kLook);
    if (result.wait_for(look) == std::future_status::ready) return true;
    if (left <= Seconds(0)) return false;
    check_interrupt();
  }
}

}  // namespace cuop
