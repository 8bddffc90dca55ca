// Waits for what another thread does that takes long, which end when the user interrupts
// (core/interrupt.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <limits>
#include <mutex>
#include <new>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop {

/// Held by one thread at a time, for std::lock_guard. Whoever waits for it may be interrupted,
/// which throws Interrupted: for locks that are held while something is measured or compiled.
/// Python's handlers of signals run amid such work, on its thread: one that asks for the same gets
/// an ExecutionError. Forks do not wait for that work: their child finds it free.
class InterruptibleMutex final : ForkListed {
 public:
  /// `work` is what is done under it, for the error's message.
  explicit InterruptibleMutex(const char* work) : work_(work) { enlist(); }

  void lock() {
    if (is_mine()) {
      throw ExecutionError(cat(work_, ": called again amid the same work of this thread, as by a ",
                               "handler of a signal, which would wait for itself; call it when ",
                               "that work is done"));
    }
    std::unique_lock lock(mutex_);
    wait_interruptibly(is_free_, lock, std::chrono::steady_clock::time_point::max(),
                       [this] { return owner_ == std::thread::id(); });
    owner_ = std::this_thread::get_id();
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      owner_ = std::thread::id();
    }
    is_free_.notify_one();
  }
  bool is_mine() const { return owner_ == std::this_thread::get_id(); }

 private:
  void renew() noexcept override {
    new (&mutex_) std::mutex;
    new (&is_free_) std::condition_variable;
    if (!is_mine()) owner_ = std::thread::id();
  }

  const char* const work_;
  std::mutex mutex_;
  std::condition_variable is_free_;
  std::atomic<std::thread::id> owner_{};  // changed under the mutex
};

/// Locks it unless this thread has it already: for work that may be done beside itself.
inline std::unique_lock<InterruptibleMutex> lock_unless_mine(InterruptibleMutex& mutex) {
  if (mutex.is_mine()) return {mutex, std::defer_lock};
  return std::unique_lock(mutex);
}

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
