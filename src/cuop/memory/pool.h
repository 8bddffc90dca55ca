// A memory pool over an upstream. Frees are reused in the order of their stream without waiting for
// the device; small blocks come from caches of the calling thread; no call to the upstream or to
// the order of streams is made under a lock; memory is taken from the upstream granule by granule
// and counted against a limit.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/callback.h"
#include "cuop/memory/central.h"
#include "cuop/memory/history.h"
#include "cuop/memory/resource.h"
#include "cuop/memory/stream_uses.h"
#include "cuop/memory/thread_cache.h"
#include "cuop/memory/upstream.h"
#include "cuop/memory/usage.h"

namespace cuop::memory {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

struct MemoryPoolOptions {
  /// Smallest block and alignment of all: a power of two from 64 to 4096.
  int64_t quantum = kAlignment;
  /// Address space a stream takes at once from an upstream that maps; 0: twice the device's memory.
  int64_t segment_bytes = 0;
  int64_t limit_bytes = kUnlimited;
  int64_t cache_bytes = kUnlimited;
  bool has_thread_caches = true;
};

/// One live or idle piece of memory, or a gap in address space.
struct BlockReport {
  uint64_t address = 0;
  int64_t bytes = 0;
  BlockState state = BlockState::kFree;
  uint64_t stream = 0;
  int64_t requested = 0;  ///< live blocks that are not cut from slabs
  double age_s = 0.0;
  std::string site;
};

struct PoolSnapshot {
  std::string device;
  std::string upstream;
  Statistics statistics;
  DeviceMemory memory;
  std::vector<std::vector<BlockReport>> segments;
  std::vector<HistoryEntry> history;
};

// What a pool is told, for callers that have none: ExecutionError unless 0 < fraction <= 1, and for
// negative bytes of a "memory limit" or "cache size".
void check_fraction(double fraction);
void check_bound(const char* what, int64_t bytes);

class Pool final : public MemoryResource, private CacheOwner, private NonCopyable {
 public:
  /// Upstream and order must outlive the pool. Memory still live when the pool ends is given back.
  Pool(Upstream& upstream, StreamOrder& order, MemoryPoolOptions options = {});
  ~Pool() override;

  Device device() const override { return upstream_.device(); }
  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  void record_stream(void* data, Stream stream) override;
  /// Live and held bytes, the most of both since reset_peak, and what was asked of the system.
  Statistics statistics() const override;
  void reset_peak() override;
  int64_t release_cached() override;

  /// Most bytes that may be held from the system, live or idle; kUnlimited for the device's memory.
  /// Idle memory above it is returned; live memory above it stays, and nothing grows.
  void set_limit(int64_t bytes);
  /// The limit as a part of the device's memory; ExecutionError unless 0 < fraction <= 1.
  void set_fraction(double fraction);
  /// Most idle bytes that are kept; more are returned when blocks are freed.
  void set_cache_size(int64_t bytes);
  /// The limit, or the device's memory without one.
  int64_t capacity() const;
  /// See MemoryCallback. Called when live bytes cross a threshold (parts of capacity()) upwards and
  /// before an allocation fails. One callback a pool.
  void set_callback(MemoryCallback callback, std::vector<double> thresholds = {0.9, 0.95});

  PoolSnapshot snapshot() const;

 private:
  /// What happens when the events have passed: a block becomes idle, or a range is given back.
  struct Pending {
    std::vector<StreamOrder::Event> events;
    void* data = nullptr;
    int64_t bytes = 0;
    void* stream = nullptr;
    Arena* arena = nullptr;  ///< with `range`
    Block* range = nullptr;
  };
  struct Release {
    Arena* arena = nullptr;
    Block* range = nullptr;
    std::vector<void*> streams;
  };
  using Lock = std::unique_lock<std::mutex>;

  // pool.cpp: the paths of allocation and deallocation.
  void* allocate_slow(int64_t bytes, Stream stream);
  void deallocate_slow(void* data, int64_t bytes, void* stream) noexcept;
  void deallocate_shared(void* data, int64_t bytes, Stream stream) noexcept;
  ThreadCache* own_cache();
  void publish(ThreadCache& cache) noexcept;
  void count_directly(int64_t change) noexcept;
  void count_use(int64_t change, int64_t peak) const noexcept;
  void tell_thresholds();
  void note(HistoryEntry::Kind kind, int64_t bytes);

  // pool_growth.cpp: taking memory from the upstream and giving it back.
  void* serve(const AllocationRequest& request);
  bool grow(const AllocationRequest& request, Lock& lock);
  bool grow_mapped(const AllocationRequest& request, Arena& arena, Lock& lock);
  bool grow_plain(const AllocationRequest& request, Lock& lock);
  /// Enters memory that the upstream gave and `reserved_` counts already; the lock is held.
  void count_growth(int64_t bytes);
  std::vector<Release> begin_release(const Arena::StreamFilter& matches, int64_t most);
  int64_t finish_release(Arena& arena, Block* range) noexcept;
  int64_t release_idle(const Arena::StreamFilter& matches, int64_t most);
  /// Gives a range back once the work that may use it is done, without waiting for that.
  void release_later(const Release& release);
  void trim() noexcept;
  void poll_pending() noexcept;
  void complete(Pending& pending) noexcept;

  // pool_reclaim.cpp: what is tried before an allocation fails.
  void* reclaim_and_allocate(const AllocationRequest& request);
  void* reclaim_once(const AllocationRequest& request);
  void finish_pending(const AllocationRequest& request);
  void flush_thread_caches(const AllocationRequest& request);
  void release_own_idle(const AllocationRequest& request);
  void take_from_other_streams(const AllocationRequest& request);
  void bring_strays_home();
  /// Blocks until the work that the stream has been given so far is done; Interrupted when the user
  /// interrupts.
  void wait_for(void* stream);
  MemoryError out_of_memory(const AllocationRequest& request);

  // CacheOwner
  void adopt(ThreadCache& cache) noexcept override;
  void lock_for_fork() noexcept override;
  void unlock_after_fork() noexcept override;
  void drain(ThreadCache& cache);
  /// Adds what threads counted for themselves; the lock is held.
  void collect_counts() const;

  Upstream& upstream_;
  StreamOrder& order_;
  const MemoryPoolOptions options_;
  const SizeClasses classes_;
  const int64_t total_bytes_;
  uint64_t id_ = 0;
  StreamUses marks_;
  CallbackSlot callback_;

  // Counted without the lock.
  mutable Usage usage_;
  mutable Usage active_;  ///< the same with what is pending
  mutable std::atomic<int64_t> allocations_ = 0;
  mutable std::atomic<int64_t> frees_ = 0;
  std::atomic<int64_t> pending_bytes_ = 0;
  std::atomic<int64_t> limit_bytes_;
  std::atomic<int64_t> cache_bytes_;
  std::atomic<int64_t> failures_ = 0;
  std::array<std::atomic<int64_t>, 5> reclaim_steps_{};

  mutable std::mutex mutex_;
  Central central_;
  int64_t reserved_ = 0;  ///< mapped bytes and those that are being mapped
  int64_t peak_reserved_ = 0;
  int64_t maps_ = 0;
  int64_t unmaps_ = 0;
  std::deque<Pending> pending_;
  std::vector<std::shared_ptr<ThreadCache>> caches_;
  History history_;
};

}  // namespace cuop::memory
