// Lets a long wait and a long computation be ended by the user: Python's Ctrl-C is a flag that
// somebody must look at.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "cuop/core/noncopyable.h"

namespace cuop {

/// Thrown to end a wait or a computation that the user has interrupted. Not an Error: what catches
/// those, to try something else, must not go on.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Whether the user has interrupted; asked now and then by threads that wait or compute for long.
/// Null for nobody to ask.
void set_interrupt_check(bool (*is_interrupted)());
/// Throws Interrupted when that is so, which it finds out at most every 0.05 s in a thread, or when
/// the thread's work is cancelled.
void check_interrupt();

/// While it lives, check_interrupt() also throws in this thread once the flag is set.
class CancelScope : NonCopyable {
 public:
  explicit CancelScope(const std::atomic<bool>& flag);
  ~CancelScope();

 private:
  const std::atomic<bool>* const before_;
};

/// Waits until `is_done` or the deadline; returns is_done(). An interrupt is thrown with the lock
/// held.
template <class IsDone>
bool wait_interruptibly(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                        std::chrono::steady_clock::time_point deadline, const IsDone& is_done) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLook = std::chrono::milliseconds(50);
  while (!is_done()) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    changed.wait_until(lock, std::min(deadline, now + kLook));
    struct Unlocked {
      std::unique_lock<std::mutex>& lock;
      explicit Unlocked(std::unique_lock<std::mutex>& held) : lock(held) { lock.unlock(); }
      ~Unlocked() { lock.lock(); }
    } const unlocked(lock);
    check_interrupt();
  }
  return true;
}

}  // namespace cuop
