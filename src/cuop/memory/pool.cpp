#include "cuop/memory/pool.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/memory/sites.h"

namespace cuop::memory {

namespace {

bool is_small(int64_t bytes) {
  return static_cast<uint64_t>(bytes) - 1 < static_cast<uint64_t>(SizeClasses::kLargest);
}

}  // namespace

Pool::Pool(Upstream& upstream, StreamOrder& order, MemoryPoolOptions options)
    : upstream_(upstream),
      order_(order),
      options_(options),
      classes_(options.quantum),
      total_bytes_(upstream.memory().total),
      limit_bytes_(options.limit_bytes),
      cache_bytes_(options.cache_bytes),
      central_(classes_, {upstream.can_map(), upstream.granule(), upstream.large_granule()}) {
  id_ = register_cache_owner(*this);
}

Pool::~Pool() {
  unregister_cache_owner(id_);
  for (const Pending& pending : pending_) {
    for (const StreamOrder::Event event : pending.events) order_.wait(event);
  }
  finish_pending({});  // waits for nothing any more
  for (Arena* arena : central_.arenas()) {
    if (upstream_.can_map()) {
      // Blocks need not end where granules do, runs of mapped blocks do.
      std::byte* start = nullptr;
      std::byte* end = nullptr;
      const auto unmap_run = [&] {
        if (end != start) upstream_.unmap(start, end - start, arena->granule());
      };
      arena->for_each([&](const Block& block) {
        if (block.state == BlockState::kUnmapped) return;
        if (block.address != end || block.before == nullptr) {
          unmap_run();
          start = block.address;
        }
        end = block.end();
      });
      unmap_run();
    }
    for (const Segment& segment : arena->segments()) {
      upstream_.release(segment.acquired, segment.acquired_bytes);
    }
  }
}

void* Pool::allocate(int64_t bytes, Stream stream) {
  if (is_small(bytes)) [[likely]] {
    ThreadCache* cache = find_thread_cache(id_);
    if (cache != nullptr && cache->claim()) [[likely]] {
      void* data = cache->pop(classes_.index(bytes), stream.handle);
      const bool is_due = data != nullptr && cache->count_allocation(bytes);
      cache->unclaim();
      if (is_due) {
        publish(*cache);
        tell_thresholds();
      }
      if (data != nullptr) [[likely]]
        return data;
    }
  }
  return allocate_slow(bytes, stream);
}

void Pool::deallocate(void* data, int64_t bytes, Stream stream) noexcept {
  if (data == nullptr) return;
  if (marks_.may_have(data)) [[unlikely]]
    return deallocate_shared(data, bytes, stream);
  if (is_small(bytes)) [[likely]] {
    ThreadCache* cache = find_thread_cache(id_);
    if (cache != nullptr && cache->claim()) [[likely]] {
      const bool is_kept = cache->push(classes_.index(bytes), stream.handle, data);
      const bool is_due = is_kept && cache->count_free(bytes);
      cache->unclaim();
      if (is_due) publish(*cache);
      if (is_kept) [[likely]]
        return;
    }
  }
  deallocate_slow(data, bytes, stream.handle);
}

void* Pool::allocate_slow(int64_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (bytes < 0) throw MemoryError(cat("memory: ", bytes, " bytes were asked for; give 0 or more"));
  poll_pending();
  AllocationRequest request = central_.request(bytes, stream.handle);
  request.since_ns = trace::now_ns();
  request.site = is_small(bytes) ? 0 : current_site();
  void* data = bytes <= capacity() ? serve(request) : nullptr;
  if (data == nullptr) data = reclaim_and_allocate(request);
  count_directly(bytes);
  if (!is_small(bytes)) {
    const std::lock_guard lock(mutex_);
    note(HistoryEntry::Kind::kAllocate, bytes);
  }
  tell_thresholds();
  return data;
}

void Pool::deallocate_slow(void* data, int64_t bytes, void* stream) noexcept {
  bool was_live = true;
  {
    const std::lock_guard lock(mutex_);
    ThreadCache* cache = is_small(bytes) ? find_thread_cache(id_) : nullptr;
    // Others claim caches under this lock only, so the claim succeeds.
    if (cache != nullptr && cache->claim()) {
      // Half of the class goes, so that the next frees and allocations both find room; all goes
      // when the thread holds too much in other classes.
      const int size_class = classes_.index(bytes);
      std::array<void*, SizeClasses::kMaxCapacity> excess;
      const int count =
          cache->drain(size_class, stream, excess.data(), (classes_.capacity(size_class) + 1) / 2);
      for (int i = 0; i < count; ++i) central_.give(excess[static_cast<size_t>(i)], stream);
      if (cache->idle_bytes() + classes_.bytes(size_class) > ThreadCache::kMaxIdleBytes) {
        cache->drain_all([&](void* block, void* owner) { central_.give(block, owner); });
      }
      cache->unclaim();
    }
    was_live = central_.give(data, stream);
  }
  if (!was_live) {
    log(LogLevel::kWarn, "memory: a block that is not live was freed (", bytes,
        " bytes, as told); the free is ignored");
    return;
  }
  count_directly(-bytes);
  if (!is_small(bytes)) {
    const std::lock_guard lock(mutex_);
    note(HistoryEntry::Kind::kFree, bytes);
  }
  trim();
}

void Pool::deallocate_shared(void* data, int64_t bytes, Stream stream) noexcept {
  Pending pending;
  for (const Stream& other : marks_.take(data)) {
    if (other == stream) continue;
    const StreamOrder::Event event = order_.record(other);
    if (event != nullptr) pending.events.push_back(event);
  }
  if (pending.events.empty()) {
    deallocate_slow(data, bytes, stream.handle);
    return;
  }
  pending.data = data;
  pending.bytes = bytes;
  pending.stream = stream.handle;
  count_directly(-bytes);
  active_.add(bytes, bytes);  // no more live, but still in use
  pending_bytes_ += bytes;
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(pending));
  }
  poll_pending();
}

void Pool::record_stream(void* data, Stream stream) {
  if (data == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    if (!central_.owns(data)) return;
  }
  marks_.add(data, stream);
}

ThreadCache* Pool::own_cache() {
  if (!options_.has_thread_caches) return nullptr;
  if (ThreadCache* cache = find_thread_cache(id_)) return cache;
  auto cache = std::make_shared<ThreadCache>(id_, classes_);
  ThreadCache* own = add_thread_cache(cache);
  if (own == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  caches_.push_back(std::move(cache));
  return own;
}

void Pool::publish(ThreadCache& cache) noexcept {
  if (!cache.claim()) return;  // somebody else is collecting it
  const ThreadCache::Counts counts = cache.take_counts();
  cache.unclaim();
  count_use(counts.live, counts.live_peak);
  allocations_.fetch_add(counts.allocations, std::memory_order_relaxed);
  frees_.fetch_add(counts.frees, std::memory_order_relaxed);
}

void Pool::count_directly(int64_t change) noexcept {
  // What this thread kept to itself comes first, or the peak would miss it.
  if (ThreadCache* cache = find_thread_cache(id_)) publish(*cache);
  count_use(change, std::max<int64_t>(0, change));
  (change > 0 ? allocations_ : frees_).fetch_add(1, std::memory_order_relaxed);
}

void Pool::count_use(int64_t change, int64_t peak) const noexcept {
  usage_.add(change, peak);
  active_.add(change, peak);
}

void Pool::tell_thresholds() {
  const int64_t allocated = usage_.live();
  const double threshold = callback_.crossed(allocated, capacity());
  if (threshold == 0.0) return;
  MemoryEvent event;
  event.device = device();
  event.threshold = threshold;
  event.allocated = allocated;
  event.capacity = capacity();
  {
    const std::lock_guard lock(mutex_);
    event.reserved = reserved_;
  }
  callback_.call(event);
}

void Pool::note(HistoryEntry::Kind kind, int64_t bytes) {
  history_.add({trace::now_ns(), kind, bytes, usage_.live(), reserved_});
}

void Pool::adopt(ThreadCache& cache) noexcept {
  const std::lock_guard lock(mutex_);
  if (cache.claim_patiently()) {
    drain(cache);
    cache.unclaim();
  }
  std::erase_if(caches_, [&](const auto& known) { return known.get() == &cache; });
}

void Pool::drain(ThreadCache& cache) {
  cache.drain_all([&](void* data, void* stream) { central_.give(data, stream); });
  const ThreadCache::Counts counts = cache.take_counts();
  count_use(counts.live, counts.live_peak);
  allocations_ += counts.allocations;
  frees_ += counts.frees;
}

void Pool::lock_for_fork() noexcept {
  mutex_.lock();
  marks_.mutex().lock();
  callback_.mutex().lock();
}

void Pool::unlock_after_fork() noexcept {
  callback_.mutex().unlock();
  marks_.mutex().unlock();
  mutex_.unlock();
}

}  // namespace cuop::memory
