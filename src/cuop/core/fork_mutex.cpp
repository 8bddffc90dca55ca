#include "cuop/core/fork_mutex.h"

#include <pthread.h>

#include <ctime>
#include <new>
#include <thread>
#include <utility>

#include "cuop/core/fork_steps.h"

namespace cuop {

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kOneWait{20};
constexpr std::chrono::milliseconds kMostCourtesy{200};

/// What this thread holds. Reached without a call, as it is changed in every lock.
[[gnu::tls_model("initial-exec")]] constinit thread_local int held_here = 0;
constinit std::atomic<int> waiting_forks = 0;

/// Else a mutex that threads take in turns would never be free for a fork. Not for long, as who
/// holds another one may wait for this thread.
void wait_for_forks() noexcept {
  const Steady::time_point end = Steady::now() + kMostCourtesy;
  while (waiting_forks > 0 && Steady::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

/// Unless they wait for what this thread holds.
inline void let_forks_go_first() noexcept {
  if (waiting_forks > 0 && held_here == 0) [[unlikely]]
    wait_for_forks();
}

/// ThreadSanitizer follows 64 locks of a thread and ends a process that takes more.
#if defined(__SANITIZE_THREAD__)
constexpr bool kIsThreadSanitized = true;
#else
constexpr bool kIsThreadSanitized = false;
#endif

}  // namespace

bool holds_up_forks() noexcept { return held_here > 0; }

void ForkListed::begin_to_hold() noexcept {
  let_forks_go_first();
  ++held_here;
}

void ForkListed::end_to_hold() noexcept { --held_here; }

/// Of the process. It is locked during a fork: nothing enters or leaves then.
class ForkListed::List {
 public:
  void add(ForkListed& one) noexcept {
    const std::lock_guard lock(mutex_);
    if (one.is_listed_) return;
    put_first(one);
    one.is_listed_.store(true, std::memory_order_release);
  }
  void remove(ForkListed& one) noexcept {
    const std::lock_guard lock(mutex_);
    take_out(one);
    one.is_listed_ = false;
  }
  static List& list() noexcept {
    static constinit List all;
    return all;
  }

 private:
  /// Who holds one may wait for another: while one is waited for, none is held.
  void hold_all() noexcept {
    ++waiting_forks;
    attempt_to_hold_all();
    --waiting_forks;
  }
  void attempt_to_hold_all() noexcept {
    const Steady::time_point end = Steady::now() + kPatience;
    while (true) {
      mutex_.lock();
      const bool is_last_attempt = Steady::now() >= end;
      ForkListed* const busy = hold_free_ones(is_last_attempt);
      if (busy == nullptr) return;
      release_held();
      take_out(*busy);
      put_first(*busy);  // the next attempt begins with it
      mutex_.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // who wants to enter can
    }
  }
  /// Returns the first that is not free; null when all are held, or others are passed over.
  ForkListed* hold_free_ones(bool passes_others) noexcept {
    for (ForkListed* one = first_; one != nullptr; one = one->next_) {
      const bool may_wait = one == first_ && !passes_others;
      const auto until = may_wait ? Steady::now() + kOneWait : Steady::time_point::min();
      if (!one->hold(until) && !passes_others) return one;
    }
    return nullptr;
  }
  void release_held() noexcept {
    for (ForkListed* one = first_; one != nullptr; one = one->next_) one->release();
  }
  void release_all() noexcept {
    release_held();
    mutex_.unlock();
  }
  void renew_all() noexcept {
    for (ForkListed* one = first_; one != nullptr; one = one->next_) one->renew();
    waiting_forks = 0;  // others may have begun one
    mutex_.unlock();
  }
  void put_first(ForkListed& one) noexcept {
    one.before_ = nullptr;
    one.next_ = first_;
    if (first_ != nullptr) first_->before_ = &one;
    first_ = &one;
  }
  void take_out(ForkListed& one) noexcept {
    (one.before_ == nullptr ? first_ : one.before_->next_) = one.next_;
    if (one.next_ != nullptr) one.next_->before_ = one.before_;
  }

  static const bool are_forks_told_;

  std::mutex mutex_;
  ForkListed* first_ = nullptr;
};

/// From the start: a fork that begins before there is one to list would not wait for it.
const bool ForkListed::List::are_forks_told_ = [] {
  static constexpr ForkSteps kSteps{[]() noexcept { list().hold_all(); },
                                    []() noexcept { list().release_all(); },
                                    []() noexcept { list().renew_all(); }};
  set_fork_steps(ForkStage::kLocks, kSteps);
  return true;
}();

void ForkListed::enter() noexcept {
  if (!kIsThreadSanitized) List::list().add(*this);
}
void ForkListed::leave() noexcept { List::list().remove(*this); }

bool ForkMutex::is_mine() const { return owner_.load(std::memory_order_relaxed) == &held_here; }

void ForkMutex::lock() {
  enlist();
  let_forks_go_first();
  mutex_.lock();
  owner_.store(&held_here, std::memory_order_relaxed);
  ++held_here;
}

void ForkMutex::unlock() noexcept {
  owner_.store(nullptr, std::memory_order_relaxed);
  mutex_.unlock();
  --held_here;
}

bool ForkMutex::hold(Steady::time_point until) noexcept {
  if (is_mine()) return true;
  is_held_for_fork_ = mutex_.try_lock();
  if (!is_held_for_fork_ && until > Steady::now()) {
    const auto since_start = until.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_start);
    const timespec end{seconds.count(), std::chrono::nanoseconds(since_start - seconds).count()};
    is_held_for_fork_ = pthread_mutex_clocklock(mutex_.native_handle(), CLOCK_MONOTONIC, &end) == 0;
  }
  return is_held_for_fork_;
}

void ForkMutex::release() noexcept {
  if (!std::exchange(is_held_for_fork_, false)) return;
  mutex_.unlock();
}

void ForkMutex::renew() noexcept {
  if (is_mine()) return;
  if (is_held_for_fork_) return release();
  new (&mutex_) std::mutex;
  owner_ = nullptr;
  was_left_behind_ = true;
}

}  // namespace cuop
