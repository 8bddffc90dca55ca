// Waits for a GPU that the user can interrupt: the driver is asked again and again, because none of
// its own waits hears anything else.
#pragma once

#include <chrono>

#include "cuop/backend/cuda/driver.h"
#include "cuop/core/interrupt.h"

namespace cuop::backend::cuda {

/// How long a wait is spent awake: to be woken takes up to 0.2 ms, which short work would notice.
inline constexpr std::chrono::microseconds kAwake{10000};

/// The pauses between two questions: none while awake, so that short waits end as soon as those of
/// the driver, then a small part of what was waited already.
class WaitingPause {
 public:
  void next();

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Polls `query` until its result is another than "not ready", and returns that. Interrupted when
/// the user interrupts; the work goes on.
template <class Query>
Result wait_until_ready(const Query& query) {
  Result result = query();
  if (result != Result::kNotReady) return result;
  WaitingPause pause;
  do {
    pause.next();
    check_interrupt();
    result = query();
  } while (result == Result::kNotReady);
  return result;
}

/// Waits for all that the stream holds, and returns what became of it. The stream's context is
/// current, and it is not being captured.
Result wait_for_stream(StreamHandle stream);

}  // namespace cuop::backend::cuda
