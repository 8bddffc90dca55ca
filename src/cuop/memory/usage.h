// Live bytes of a pool and their peak. Threads add what they kept to themselves in batches, so with
// several threads the peak may miss up to ThreadCache::kPublishBytes a thread; with one it is
// exact.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuop::memory {

class Usage {
 public:
  /// Adds a change whose largest intermediate value was `peak`.
  void add(int64_t change, int64_t peak) noexcept {
    const int64_t before = live_.fetch_add(change, std::memory_order_relaxed);
    raise(before + peak);
  }
  int64_t live() const noexcept { return live_.load(std::memory_order_relaxed); }
  int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() noexcept { peak_.store(live(), std::memory_order_relaxed); }

 private:
  void raise(int64_t value) noexcept {
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (value > peak && !peak_.compare_exchange_weak(peak, value, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int64_t> live_ = 0;
  std::atomic<int64_t> peak_ = 0;
};

}  // namespace cuop::memory
