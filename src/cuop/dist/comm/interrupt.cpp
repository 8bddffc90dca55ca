#include "cuop/dist/comm/interrupt.h"

#include <atomic>
#include <chrono>

namespace cuop::dist {

namespace {
std::atomic<void (*)()> interrupt_check = nullptr;
}

void set_interrupt_check(void (*check)()) { interrupt_check = check; }

void check_interrupt() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPeriod = std::chrono::milliseconds(100);
  thread_local Clock::time_point next = Clock::now() + kPeriod;
  void (*const check)() = interrupt_check;
  if (check == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + kPeriod;
  check();
}

}  // namespace cuop::dist
