#include "cuop/core/interrupt.h"

namespace cuop {

namespace {
std::atomic<bool (*)()> interrupt_check = nullptr;
thread_local const std::atomic<bool>* cancelled = nullptr;
}  // namespace

void set_interrupt_check(bool (*is_interrupted)()) { interrupt_check = is_interrupted; }

void check_interrupt() {
  if (cancelled != nullptr && *cancelled) throw Interrupted();
  using Clock = std::chrono::steady_clock;
  constexpr auto kPeriod = std::chrono::milliseconds(50);
  thread_local Clock::time_point next = Clock::now() + kPeriod;
  bool (*const check)() = interrupt_check;
  if (check == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + kPeriod;
  if (check()) throw Interrupted();
}

CancelScope::CancelScope(const std::atomic<bool>& flag) : before_(cancelled) { cancelled = &flag; }

CancelScope::~CancelScope() { cancelled = before_; }

}  // namespace cuop
