// Short waits that are spent awake.
#pragma once

#include <chrono>
#include <thread>

namespace cuop {

/// What it takes to wake a sleeping thread on a virtual machine, where that is longest.
inline constexpr std::chrono::microseconds kWakingTime{100};

/// Looks for a moment whether `holds()`; returns whether it does. What comes soon is met awake; a
/// wait without an end goes on by sleeping.
template <class Condition>
bool spin_until(const Condition& holds, std::chrono::microseconds moment = kWakingTime) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + moment; !holds();) {
    if (Clock::now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace cuop
