#include "cuop/memory/callback.h"

#include <algorithm>
#include <exception>

#include "cuop/core/error.h"
#include "cuop/core/log.h"

namespace cuop::memory {

namespace {

thread_local bool is_inside = false;

}  // namespace

const char* name(MemoryEvent::Kind kind) {
  return kind == MemoryEvent::Kind::kThreshold ? "threshold" : "out_of_memory";
}

void check_thresholds(const std::vector<double>& thresholds) {
  for (const double threshold : thresholds) {
    if (!(threshold > 0.0 && threshold <= 1.0)) {
      throw ExecutionError(cat("set_memory_callback: thresholds has ", threshold,
                               ", not a fraction of the capacity; give 0 < threshold <= 1"));
    }
  }
}

void CallbackSlot::set(MemoryCallback callback, std::vector<double> thresholds) {
  check_thresholds(thresholds);
  std::sort(thresholds.begin(), thresholds.end());
  const bool is_set = static_cast<bool>(callback);
  auto state = std::make_shared<const State>(State{std::move(callback), std::move(thresholds)});
  const std::lock_guard lock(mutex_);
  std::swap(state_, state);  // the old one ends after the lock
  is_set_ = is_set;
  level_ = 0;
}

std::shared_ptr<const CallbackSlot::State> CallbackSlot::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool CallbackSlot::call(const MemoryEvent& event) {
  if (!is_set_ || is_inside) return false;
  const std::shared_ptr<const State> current = state();
  if (current == nullptr || !current->callback) return false;
  is_inside = true;
  try {
    current->callback(event);
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, "memory: the callback for ", name(event.kind), " raised: ", error.what());
  }
  is_inside = false;
  return true;
}

double CallbackSlot::crossed(int64_t allocated, int64_t capacity) noexcept {
  if (!is_set_.load(std::memory_order_relaxed)) return 0.0;
  const std::shared_ptr<const State> current = state();
  if (current == nullptr) return 0.0;
  const double use =
      static_cast<double>(allocated) / static_cast<double>(std::max<int64_t>(1, capacity));
  const auto& thresholds = current->thresholds;
  const auto level = static_cast<size_t>(
      std::upper_bound(thresholds.begin(), thresholds.end(), use) - thresholds.begin());
  const size_t before = level_.exchange(level);
  return level > before ? thresholds[level - 1] : 0.0;
}

}  // namespace cuop::memory
