// Locks that a forked child finds free: core/fork_steps.h says why it would not.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "cuop/core/noncopyable.h"

namespace cuop {

/// Whether this thread has something that forks wait for: it must not wait for them.
bool holds_up_forks() noexcept;

/// What is to be told of forks: from its first enlist() on, while it lives.
class ForkListed : NonCopyable {
 protected:
  /// Around what forks wait for: until then this lets them go first.
  static void begin_to_hold() noexcept;
  static void end_to_hold() noexcept;

  constexpr ForkListed() noexcept = default;
  ~ForkListed() {
    if (is_listed_.load(std::memory_order_relaxed)) leave();
  }
  void enlist() noexcept {
    if (!is_listed_.load(std::memory_order_acquire)) [[unlikely]]
      enter();
  }

 private:
  class List;
  void enter() noexcept;
  void leave() noexcept;

  /// Before a fork, by the thread that forks: keeps other threads off. False when one is there and
  /// does not leave until then.
  virtual bool hold(std::chrono::steady_clock::time_point) noexcept { return true; }
  /// Lets them in again, where they were kept off.
  virtual void release() noexcept {}
  /// In the child, where no other thread is.
  virtual void renew() noexcept = 0;

  ForkListed* before_ = nullptr;
  ForkListed* next_ = nullptr;
  std::atomic<bool> is_listed_ = false;
};

/// A mutex. A fork waits until no other thread holds one, all together 5 s at most; what is held by
/// the thread that forks stays so on both sides. It may be constinit.
class ForkMutex final : ForkListed {
 public:
  constexpr ForkMutex() noexcept = default;

  void lock();
  void unlock() noexcept;

  /// Whether this process was forked while a thread kept it for longer than that: it is free, and
  /// what it guards may be half changed.
  bool was_left_behind() const { return was_left_behind_; }

 private:
  bool hold(std::chrono::steady_clock::time_point until) noexcept override;
  void release() noexcept override;
  void renew() noexcept override;
  bool is_mine() const;

  std::mutex mutex_;
  std::atomic<const int*> owner_ = nullptr;  ///< what its thread has an own one of
  bool is_held_for_fork_ = false;
  bool was_left_behind_ = false;
};

}  // namespace cuop
