// The last changes of a pool's memory, for the time line of a snapshot. Always on: only what passes
// the pool's central path is written, one small record each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuop::memory {

struct HistoryEntry {
  enum class Kind : uint8_t { kAllocate, kFree, kMap, kUnmap, kOutOfMemory };
  int64_t time_ns = 0;  ///< on the clock of trace::now_ns
  Kind kind = Kind::kAllocate;
  int64_t bytes = 0;
  int64_t allocated = 0;  ///< live bytes afterwards
  int64_t reserved = 0;   ///< bytes held from the system afterwards
};

/// A ring of the last entries. Callers lock.
class History {
 public:
  static constexpr size_t kCapacity = 16384;
  void add(const HistoryEntry& entry) {
    if (entries_.size() < kCapacity) {
      entries_.push_back(entry);
    } else {
      entries_[next_] = entry;
    }
    next_ = (next_ + 1) % kCapacity;
  }
  /// Oldest first.
  std::vector<HistoryEntry> entries() const {
    if (entries_.size() < kCapacity) return entries_;
    const auto middle = entries_.begin() + static_cast<std::ptrdiff_t>(next_);
    std::vector<HistoryEntry> result(middle, entries_.end());
    result.insert(result.end(), entries_.begin(), middle);
    return result;
  }

 private:
  std::vector<HistoryEntry> entries_;
  size_t next_ = 0;
};

}  // namespace cuop::memory
