// Static variables of functions that a thread is making when another one forks: the child, which
// has not that thread, would wait for it for ever. The linker sends the calls with which this
// library begins and ends to make one (Itanium C++ ABI, 3.3.3) through here: CMakeLists.txt.
#include <atomic>
#include <chrono>
#include <thread>

#include "cuop/core/fork_mutex.h"

namespace cuop {

namespace {

/// Forks wait for the threads that make some, which are not many nor often.
class StaticsBeingMade final : ForkListed {
 public:
  constexpr StaticsBeingMade() noexcept = default;

  void begin() noexcept {
    if (made_here++ > 0) return;
    enlist();
    begin_to_hold();
    ++threads_;
    while (is_closed_) {
      --threads_;
      while (is_closed_) std::this_thread::sleep_for(kStep);
      ++threads_;
    }
  }
  void end() noexcept {
    if (--made_here > 0) return;
    --threads_;
    end_to_hold();
  }

 private:
  static int own() { return made_here > 0 ? 1 : 0; }

  bool hold(std::chrono::steady_clock::time_point until) noexcept override {
    is_closed_ = true;
    while (threads_ > own()) {
      if (std::chrono::steady_clock::now() >= until) {
        is_closed_ = false;
        return false;
      }
      std::this_thread::sleep_for(kStep);
    }
    return true;
  }
  void release() noexcept override { is_closed_ = false; }
  void renew() noexcept override {
    threads_ = own();
    is_closed_ = false;
  }

  static constexpr std::chrono::microseconds kStep{50};
  static inline constinit thread_local int made_here = 0;  // one while it makes another
  std::atomic<int> threads_ = 0;
  std::atomic<bool> is_closed_ = false;
};

/// Never destroyed: static variables may be made while the process ends.
union Immortal {
  constexpr Immortal() noexcept : statics() {}
  ~Immortal() {}
  StaticsBeingMade statics;
};
constinit Immortal immortal;

}  // namespace

}  // namespace cuop

extern "C" {
int __real___cxa_guard_acquire(void* guard);
void __real___cxa_guard_release(void* guard) noexcept;
void __real___cxa_guard_abort(void* guard) noexcept;

#pragma GCC visibility push(hidden)

/// 1 when this thread is to make the variable, 0 when it is there.
int __wrap___cxa_guard_acquire(void* guard) {
  cuop::immortal.statics.begin();
  int is_to_make = 0;
  try {
    is_to_make = __real___cxa_guard_acquire(guard);
  } catch (...) {  // it is made by the making of itself
    cuop::immortal.statics.end();
    throw;
  }
  if (is_to_make == 0) cuop::immortal.statics.end();
  return is_to_make;
}

void __wrap___cxa_guard_release(void* guard) noexcept {
  __real___cxa_guard_release(guard);
  cuop::immortal.statics.end();
}

void __wrap___cxa_guard_abort(void* guard) noexcept {
  __real___cxa_guard_abort(guard);
  cuop::immortal.statics.end();
}

#pragma GCC visibility pop
}
