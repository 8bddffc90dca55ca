// Calls of libraries that take long, cannot be cut into pieces and hear no interrupt.
#pragma once

#include <chrono>
#include <functional>

#include "cuop/core/spin.h"

namespace cuop::backend {

/// Runs `work` on another thread, with the caller's number of threads and options
/// (backend/execution.h), and waits; what it throws is thrown here. When the user interrupts,
/// Interrupted is thrown at once while the library finishes: `work` must own all that it touches,
/// which is let go when the library is done. Costs what it takes to wake a thread; the end is met
/// awake when it comes within `awake`.
void run_apart(std::function<void()> work, std::chrono::microseconds awake = kWakingTime);

/// compute(arguments...): here, or with copies of the arguments on another thread when it
/// `is_long`.
template <class Compute, class... Arguments>
void run_apart_if(bool is_long, const Compute& compute, const Arguments&... arguments) {
  if (is_long) {
    run_apart([=] { compute(arguments...); });
  } else {
    compute(arguments...);
  }
}

}  // namespace cuop::backend
