// The blocks that one thread keeps for itself, so that most allocations of small blocks touch
// nothing that other threads touch. The owner claims its cache with one atomic exchange and never
// waits: when somebody else (a flush) has it, the owner goes to the pool's central path.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/memory/size_class.h"

namespace cuop::memory {

class ThreadCache : NonCopyable {
 public:
  /// Change of live bytes that a thread keeps to itself before it is added to the pool's figure.
  static constexpr int64_t kPublishBytes = int64_t{1} << 20;
  /// Idle bytes that one thread may hold.
  static constexpr int64_t kMaxIdleBytes = int64_t{16} << 20;

  ThreadCache(uint64_t pool_id, const SizeClasses& classes)
      : pool_id_(pool_id), classes_(classes) {}

  uint64_t pool_id() const { return pool_id_; }

  bool claim() noexcept { return !is_claimed_.exchange(true, std::memory_order_acquire); }
  /// For others than the owner, whose own claims last a few instructions. False when it was held
  /// all the same: by a thread that is not running, or, after a fork, no more.
  bool claim_patiently() noexcept;
  void unclaim() noexcept { is_claimed_.store(false, std::memory_order_release); }

  // All below: for the holder of the claim.

  /// An idle block, or null.
  void* pop(int size_class, void* stream) noexcept {
    if (front_ == nullptr || front_->stream != stream) [[unlikely]] {
      if (!bring_to_front(stream)) return nullptr;
    }
    uint8_t& count = front_->count[static_cast<size_t>(size_class)];
    if (count == 0) return nullptr;
    idle_bytes_ -= classes_.bytes(size_class);
    return front_->slot(size_class, --count);
  }
  /// False when the cache has no room for it.
  bool push(int size_class, void* stream, void* data) noexcept {
    if (front_ == nullptr || front_->stream != stream) [[unlikely]] {
      if (!bring_to_front(stream)) return false;
    }
    uint8_t& count = front_->count[static_cast<size_t>(size_class)];
    const int64_t bytes = classes_.bytes(size_class);
    if (count >= classes_.capacity(size_class) || idle_bytes_ + bytes > kMaxIdleBytes) return false;
    front_->slot(size_class, count++) = data;
    idle_bytes_ += bytes;
    return true;
  }
  /// Makes room for blocks of the stream.
  void open(void* stream);
  /// Takes up to `count` blocks of the class away, returns how many.
  int drain(int size_class, void* stream, void** out, int count) noexcept;
  /// Takes everything away: `take(data, stream)` for each.
  template <class Take>
  void drain_all(Take&& take) {
    for (const auto& magazines : all_) {
      for (int c = 0; c < classes_.count(); ++c) {
        uint8_t& count = magazines->count[static_cast<size_t>(c)];
        while (count > 0) take(magazines->slot(c, --count), magazines->stream);
      }
    }
    idle_bytes_ = 0;
  }
  int64_t idle_bytes() const { return idle_bytes_; }
  /// Bytes of the largest idle block.
  int64_t largest_idle() const;

  /// Counts a block of `bytes`; true when the change is large enough to be published.
  bool count_allocation(int64_t bytes) noexcept {
    ++allocations_;
    live_ += bytes;
    if (live_ > live_peak_) live_peak_ = live_;
    return live_ > kPublishBytes;
  }
  bool count_free(int64_t bytes) noexcept {
    ++frees_;
    live_ -= bytes;
    return live_ < -kPublishBytes;
  }
  /// Counts since the last call of this.
  struct Counts {
    int64_t allocations = 0;
    int64_t frees = 0;
    int64_t live = 0;       ///< change of live bytes
    int64_t live_peak = 0;  ///< its largest value on the way
  };
  Counts take_counts() noexcept;

 private:
  struct Magazines {
    void* stream = nullptr;
    std::array<uint8_t, SizeClasses::kMaxCount> count{};
    std::array<void*, size_t{SizeClasses::kMaxCount} * SizeClasses::kMaxCapacity> slots;
    void*& slot(int size_class, int i) {
      return slots[static_cast<size_t>(size_class) * SizeClasses::kMaxCapacity +
                   static_cast<size_t>(i)];
    }
  };

  bool bring_to_front(void* stream) noexcept;

  uint64_t pool_id_;
  SizeClasses classes_;
  std::atomic<bool> is_claimed_ = false;
  Magazines* front_ = nullptr;
  int64_t idle_bytes_ = 0;
  int64_t allocations_ = 0;
  int64_t frees_ = 0;
  int64_t live_ = 0;
  int64_t live_peak_ = 0;
  std::vector<std::unique_ptr<Magazines>> all_;  ///< one for each stream
};

/// A pool, as far as the caches of threads need it.
class CacheOwner {
 public:
  /// A thread ends: takes its cache back. Called with the registry locked.
  virtual void adopt(ThreadCache& cache) noexcept = 0;
  /// Around fork(), so that the child never finds a lock held by a thread it does not have.
  virtual void lock_for_fork() noexcept = 0;
  virtual void unlock_after_fork() noexcept = 0;

 protected:
  ~CacheOwner() = default;
};

/// A number for a new pool; caches know their pool by it.
uint64_t register_cache_owner(CacheOwner& owner);
/// From here on no thread calls the owner.
void unregister_cache_owner(uint64_t pool_id);

/// This thread's cache of the pool, or null.
ThreadCache* find_thread_cache(uint64_t pool_id) noexcept;
/// Adds one; null when this thread is ending.
ThreadCache* add_thread_cache(std::shared_ptr<ThreadCache> cache);

}  // namespace cuop::memory
