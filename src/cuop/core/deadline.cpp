#include "cuop/core/deadline.h"

#include <algorithm>
#include <limits>

namespace cuop {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kMostSeconds = 1e8;  // three years; more would not fit the clock

thread_local Clock::time_point deadline = Clock::time_point::max();

Clock::time_point in(double seconds) {
  const std::chrono::duration<double> wanted(std::clamp(seconds, 0.0, kMostSeconds));
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(wanted);
}

}  // namespace

DeadlineScope::DeadlineScope(double seconds) : before_(deadline) {
  deadline = std::min(deadline, in(seconds));
}

DeadlineScope::~DeadlineScope() { deadline = before_; }

double seconds_left() {
  if (deadline == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::max(std::chrono::duration<double>(deadline - Clock::now()).count(), 0.0);
}

}  // namespace cuop
