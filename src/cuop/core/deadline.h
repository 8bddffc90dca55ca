// The moment by which a thread's work is to be done: what may take long, as a compiler, asks how
// much time it has.
#pragma once

#include <chrono>

#include "cuop/core/noncopyable.h"

namespace cuop {

/// Gives this thread's work so many seconds for the time of its life; 0 when they are negative.
/// Within another one no more than that has left.
class DeadlineScope : NonCopyable {
 public:
  explicit DeadlineScope(double seconds);
  ~DeadlineScope();

 private:
  const std::chrono::steady_clock::time_point before_;
};

/// What is left of them, at least 0; infinite without any scope.
double seconds_left();

}  // namespace cuop
