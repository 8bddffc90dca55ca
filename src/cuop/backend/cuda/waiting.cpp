#include "cuop/backend/cuda/waiting.h"

#include <algorithm>
#include <thread>

namespace cuop::backend::cuda {

void WaitingPause::next() {
  constexpr std::chrono::microseconds kLongest{1000};
  const auto waited = std::chrono::steady_clock::now() - begin_;
  if (waited < kAwake) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(
        std::min<std::chrono::steady_clock::duration>(waited / 64, kLongest));
  }
}

Result wait_for_stream(StreamHandle stream) {
  return wait_until_ready([stream] { return driver().stream_query(stream); });
}

}  // namespace cuop::backend::cuda
