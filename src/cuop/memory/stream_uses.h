// Which live blocks other streams use besides their own. Frees of unmarked blocks must notice that
// nearly for free, so a count and a small filter stand before the table.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuop/core/stream.h"

namespace cuop::memory {

class StreamUses {
 public:
  void add(void* data, Stream stream);
  /// False for certain when the block has no mark.
  bool may_have(const void* data) const noexcept {
    return count_.load(std::memory_order_relaxed) != 0 &&
           filter_[slot(data)].load(std::memory_order_relaxed) != 0;
  }
  /// The block's streams, forgotten from now on; empty when it has none.
  std::vector<Stream> take(void* data);
  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr int kSlotBits = 10;
  static size_t slot(const void* data) {
    const auto key = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data));
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits));
  }

  std::atomic<int64_t> count_ = 0;
  std::array<std::atomic<uint32_t>, size_t{1} << kSlotBits> filter_{};
  std::mutex mutex_;
  std::unordered_map<void*, std::vector<Stream>> streams_;
};

}  // namespace cuop::memory
