// What a pool tells the program: use has crossed a threshold, or memory has run out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/core/device.h"

namespace cuop::memory {

struct MemoryEvent {
  enum class Kind {
    kThreshold,    ///< live bytes rose to `threshold` times the capacity or more
    kOutOfMemory,  ///< a request fails unless the callback frees memory
  };
  Kind kind = Kind::kThreshold;
  Device device;
  double threshold = 0.0;
  int64_t requested = 0;  ///< bytes, of the request that fails
  int64_t allocated = 0;  ///< live bytes
  int64_t reserved = 0;
  int64_t capacity = 0;  ///< the limit, or the device's memory without one
};

/// May query and free memory and allocate: it runs under no lock and never inside itself.
/// What it throws is logged and goes no further.
using MemoryCallback = std::function<void(const MemoryEvent&)>;

/// "threshold" or "out_of_memory".
const char* name(MemoryEvent::Kind kind);

/// ExecutionError for a threshold outside (0, 1].
void check_thresholds(const std::vector<double>& thresholds);

class CallbackSlot {
 public:
  /// An empty callback removes the one before. ExecutionError for a threshold outside (0, 1].
  void set(MemoryCallback callback, std::vector<double> thresholds);
  /// Calls it if there is one and this thread is not inside it already; returns whether it ran.
  bool call(const MemoryEvent& event);
  /// Tells a change of use: the highest threshold that has been crossed upwards since use was last
  /// below it; 0 for none.
  double crossed(int64_t allocated, int64_t capacity) noexcept;
  std::mutex& mutex() { return mutex_; }

 private:
  struct State {
    MemoryCallback callback;
    std::vector<double> thresholds;  ///< ascending
  };
  std::shared_ptr<const State> state();

  std::mutex mutex_;
  std::shared_ptr<const State> state_;
  std::atomic<bool> is_set_ = false;
  std::atomic<size_t> level_ = 0;  ///< how many thresholds use stands above
};

}  // namespace cuop::memory
