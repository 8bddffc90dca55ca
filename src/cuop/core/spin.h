// Short waits that are spent awake.
#pragma once

#include <chrono>
#include <thread>

namespace cuop {

/// Looks for a moment whether `holds()`; returns whether it does. What comes soon is met awake: to
/// wake a sleeping thread takes as long as this moment, longest on virtual machines. A wait without
/// an end goes on by sleeping.
template <class Condition>
bool spin_until(const Condition& holds) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kMoment = std::chrono::microseconds(100);
  for (const auto end = Clock::now() + kMoment; !holds();) {
    if (Clock::now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace cuop
