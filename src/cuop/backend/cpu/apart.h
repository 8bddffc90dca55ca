// Calls of libraries that take long, cannot be cut into pieces and hear no interrupt.
#pragma once

#include <functional>

namespace cuop::backend {

/// Runs `work` on another thread, with the caller's number of threads and kernel, and waits; what
/// it throws is thrown here. When the user interrupts, Interrupted is thrown at once while the
/// library finishes: `work` must own all that it touches, which is let go when the library is done.
/// Costs what it takes to wake a thread.
void run_apart(std::function<void()> work);

}  // namespace cuop::backend
