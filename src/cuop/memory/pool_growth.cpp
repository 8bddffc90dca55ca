// How a pool takes memory from its upstream and gives it back: what is concerned is put in transit
// under the lock, the upstream is called without it, and the outcome is entered under it again.
#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "cuop/memory/pool.h"

namespace cuop::memory {

namespace {

/// Plain upstreams give memory of at least this size to blocks that are not large themselves, so
/// that several share it.
constexpr int64_t kSharedSegment = int64_t{20} << 20;

}  // namespace

void* Pool::serve(const AllocationRequest& request) {
  ThreadCache* cache = request.size_class >= 0 ? own_cache() : nullptr;
  Lock lock(mutex_);
  do {
    void* data = central_.take(request);
    if (data == nullptr) continue;
    // The next blocks of the class come along: half of what the thread may keep.
    if (cache != nullptr && cache->claim()) {
      std::array<void*, SizeClasses::kMaxCapacity> more;
      cache->open(request.stream);
      const int room = classes_.capacity(request.size_class) / 2;
      const int count = central_.take_more(request, more.data(), room);
      for (int i = 0; i < count; ++i) {
        void* block = more[static_cast<size_t>(i)];
        if (!cache->push(request.size_class, request.stream, block)) {
          central_.give(block, request.stream);
        }
      }
      cache->unclaim();
    }
    return data;
  } while (grow(request, lock));
  return nullptr;
}

bool Pool::grow(const AllocationRequest& request, Lock& lock) {
  if (!upstream_.can_map()) return grow_plain(request, lock);
  if (grow_mapped(request, central_.arena(request), lock)) return true;
  Arena* second = central_.second_arena(request);
  return second != nullptr && grow_mapped(request, *second, lock);
}

bool Pool::grow_mapped(const AllocationRequest& request, Arena& arena, Lock& lock) {
  const int64_t bytes = central_.arena_bytes(request);
  void* const stream = request.stream;
  Arena::Growth growth = arena.begin_growth(bytes, stream, false);
  if (growth.range == nullptr) {
    const int64_t wanted = options_.segment_bytes > 0 ? options_.segment_bytes : 2 * total_bytes_;
    // The upstream aligns to its granule, the arena to its own.
    const int64_t least = round_up(bytes, arena.granule()) + arena.granule();
    int64_t size = std::max(least, round_up(wanted, arena.granule()) + arena.granule());
    lock.unlock();
    void* range = upstream_.acquire(size);
    while (range == nullptr && size > least) {  // the process's addresses are limited
      size = std::max(least, round_up(size / 4, arena.granule()));
      range = upstream_.acquire(size);
    }
    lock.lock();
    if (range != nullptr) arena.add_segment(range, size, stream);
    growth = arena.begin_growth(bytes, stream, range == nullptr);
  }
  if (growth.range == nullptr) return false;
  const int64_t mapped = growth.range->bytes;
  bool is_mapped = mapped <= capacity() - reserved_;
  if (is_mapped) {
    reserved_ += mapped;
    std::exception_ptr error;
    lock.unlock();
    try {
      is_mapped = upstream_.map(growth.range->address, mapped, arena.granule());
    } catch (...) {
      is_mapped = false;
      error = std::current_exception();
    }
    lock.lock();
    if (!is_mapped) reserved_ -= mapped;
    if (error) {
      arena.finish_growth(growth, false, stream);
      std::rethrow_exception(error);
    }
  }
  arena.finish_growth(growth, is_mapped, stream);
  if (!is_mapped) return false;
  count_growth(mapped);
  return true;
}

bool Pool::grow_plain(const AllocationRequest& request, Lock& lock) {
  Arena& arena = central_.arena(request);
  const int64_t exact = round_up(central_.arena_bytes(request), upstream_.granule());
  const bool is_shared = request.size_class < 0 && exact <= kSharedSegment / 2;
  const int64_t generous = is_shared ? round_up(kSharedSegment, upstream_.granule()) : exact;
  for (const int64_t size : {generous, exact}) {
    if (size > capacity() - reserved_) continue;
    reserved_ += size;
    void* memory = nullptr;
    std::exception_ptr error;
    lock.unlock();
    try {
      memory = upstream_.acquire(size);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (memory != nullptr) {
      arena.add_segment(memory, size, request.stream);
      count_growth(size);
      return true;
    }
    reserved_ -= size;
    if (error) std::rethrow_exception(error);
  }
  return false;
}

void Pool::count_growth(int64_t bytes) {
  ++maps_;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  note(HistoryEntry::Kind::kMap, bytes);
}

std::vector<Pool::Release> Pool::begin_release(const Arena::StreamFilter& matches, int64_t most) {
  std::vector<Release> result;
  central_.collect_slabs();
  for (Arena* arena : central_.arenas()) {
    for (Arena::Release& release : arena->begin_release(matches, most)) {
      most -= release.range->bytes;
      result.push_back({arena, release.range, std::move(release.streams)});
    }
  }
  return result;
}

int64_t Pool::finish_release(Arena& arena, Block* range) noexcept {
  int64_t bytes = range->bytes;
  if (upstream_.can_map()) {
    upstream_.unmap(range->address, bytes, arena.granule());
    const std::lock_guard lock(mutex_);
    arena.finish_release(range);
    reserved_ -= bytes;
    ++unmaps_;
    note(HistoryEntry::Kind::kUnmap, bytes);
    return bytes;
  }
  Segment segment;
  {
    const std::lock_guard lock(mutex_);
    segment = arena.drop_segment(range);
  }
  upstream_.release(segment.acquired, segment.acquired_bytes);
  bytes = segment.acquired_bytes;
  const std::lock_guard lock(mutex_);
  reserved_ -= bytes;
  ++unmaps_;
  note(HistoryEntry::Kind::kUnmap, bytes);
  return bytes;
}

int64_t Pool::release_idle(const Arena::StreamFilter& matches, int64_t most) {
  std::vector<Release> releases;
  {
    const std::lock_guard lock(mutex_);
    releases = begin_release(matches, most);
  }
  // Work of the streams that had the memory last may still be running.
  std::set<void*> waited;
  int64_t bytes = 0;
  size_t done = 0;
  try {
    for (; done < releases.size(); ++done) {
      const Release& release = releases[done];
      for (void* stream : release.streams) {
        if (waited.insert(stream).second) wait_for(stream);
      }
      bytes += finish_release(*release.arena, release.range);
    }
  } catch (...) {
    for (; done < releases.size(); ++done) release_later(releases[done]);
    throw;
  }
  return bytes;
}

void Pool::wait_for(void* stream) {
  const StreamOrder::Event event = order_.record({device(), stream});
  if (event == nullptr) return;
  try {
    order_.wait_interruptibly(event);
  } catch (...) {
    order_.recycle(event);
    throw;
  }
  order_.recycle(event);
}

void Pool::release_later(const Release& release) {
  Pending pending;
  for (void* stream : std::set<void*>(release.streams.begin(), release.streams.end())) {
    const StreamOrder::Event event = order_.record({device(), stream});
    if (event != nullptr) pending.events.push_back(event);
  }
  if (pending.events.empty()) {
    finish_release(*release.arena, release.range);
    return;
  }
  pending.arena = release.arena;
  pending.range = release.range;
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(pending));
}

void Pool::trim() noexcept {
  const int64_t most_idle = cache_bytes_.load(std::memory_order_relaxed);
  if (most_idle == kUnlimited) return;
  std::vector<Release> releases;
  {
    const std::lock_guard lock(mutex_);
    const int64_t excess = central_.free_bytes() - most_idle;
    // An eighth more than needed, so that the next free does not come here again.
    if (excess > 0) {
      releases = begin_release([](void*) { return true; }, excess + most_idle / 8);
    }
  }
  // A free does not wait for the device: what its streams may still use goes when they are past it.
  for (const Release& release : releases) release_later(release);
  if (!releases.empty()) poll_pending();
}

void Pool::poll_pending() noexcept {
  constexpr size_t kBatch = 32;
  std::vector<Pending> batch;
  {
    const std::lock_guard lock(mutex_);
    const size_t count = std::min(kBatch, pending_.size());
    if (count == 0) return;
    for (size_t i = 0; i < count; ++i) {
      batch.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
  }
  const auto is_done = [this](Pending& pending) {
    while (!pending.events.empty() && order_.is_done(pending.events.back())) {
      order_.recycle(pending.events.back());
      pending.events.pop_back();
    }
    return pending.events.empty();
  };
  const auto still = std::stable_partition(batch.begin(), batch.end(), is_done);
  for (auto pending = batch.begin(); pending != still; ++pending) complete(*pending);
  // Behind the others, so that the next call looks at those first.
  const std::lock_guard lock(mutex_);
  pending_.insert(pending_.end(), std::make_move_iterator(still),
                  std::make_move_iterator(batch.end()));
}

void Pool::complete(Pending& pending) noexcept {
  if (pending.range != nullptr) {
    finish_release(*pending.arena, pending.range);
    return;
  }
  pending_bytes_ -= pending.bytes;
  active_.add(-pending.bytes, 0);
  const std::lock_guard lock(mutex_);
  central_.give(pending.data, pending.stream);
}

}  // namespace cuop::memory
