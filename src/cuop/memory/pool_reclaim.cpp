// What a pool tries, cheapest first, before an allocation fails.
#include <algorithm>
#include <iterator>
#include <set>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"

namespace cuop::memory {

namespace {

constexpr size_t kHolders = 5;

std::string describe(const Block& block) {
  const auto age_ms = (trace::now_ns() - block.since_ns) / 1'000'000;
  const std::string place = site_name(block.site);
  return cat(format_bytes(block.requested), place.empty() ? "" : " of " + place, " (",
             static_cast<double>(age_ms) / 1000.0, " s old)");
}

}  // namespace

void* Pool::reclaim_and_allocate(const AllocationRequest& request) {
  if (void* data = reclaim_once(request)) return data;
  MemoryEvent event;
  event.kind = MemoryEvent::Kind::kOutOfMemory;
  event.device = device();
  event.requested = request.bytes;
  event.capacity = capacity();
  {
    const std::lock_guard lock(mutex_);
    collect_counts();
    event.allocated = usage_.live();
    event.reserved = reserved_;
  }
  if (callback_.call(event)) {
    ++reclaim_steps_[4];
    // What it freed may sit in caches and behind events: the same steps bring it out.
    if (void* data = reclaim_once(request)) return data;
  }
  throw out_of_memory(request);
}

void* Pool::reclaim_once(const AllocationRequest& request) {
  if (request.bytes > capacity()) return nullptr;  // nothing that is given up would make it fit
  using Step = void (Pool::*)(const AllocationRequest&);
  static constexpr Step kSteps[] = {&Pool::finish_pending, &Pool::flush_thread_caches,
                                    &Pool::release_own_idle, &Pool::take_from_other_streams};
  size_t index = 0;
  for (const Step step : kSteps) {
    ++reclaim_steps_[index++];
    (this->*step)(request);
    if (void* data = serve(request)) return data;
  }
  return nullptr;
}

void Pool::finish_pending(const AllocationRequest&) {
  std::deque<Pending> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(pending_);
  }
  try {
    for (; !all.empty(); all.pop_front()) {
      for (auto& events = all.front().events; !events.empty(); events.pop_back()) {
        order_.wait_interruptibly(events.back());
        order_.recycle(events.back());
      }
      complete(all.front());
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    pending_.insert(pending_.end(), std::make_move_iterator(all.begin()),
                    std::make_move_iterator(all.end()));
    throw;
  }
}

void Pool::flush_thread_caches(const AllocationRequest&) {
  const std::lock_guard lock(mutex_);
  for (const auto& cache : caches_) {
    if (!cache->claim_patiently()) continue;
    drain(*cache);
    cache->unclaim();
  }
}

void Pool::release_own_idle(const AllocationRequest& request) {
  release_idle([&](void* stream) { return stream == request.stream; }, kUnlimited);
}

void Pool::take_from_other_streams(const AllocationRequest& request) {
  bring_strays_home();
  Arena* arena = &central_.arena(request);
  Block* block = nullptr;
  void* owner = nullptr;
  {
    const std::lock_guard lock(mutex_);
    block = arena->begin_transfer(central_.arena_bytes(request), request.stream);
    if (Arena* second = central_.second_arena(request); block == nullptr && second != nullptr) {
      arena = second;
      block = arena->begin_transfer(central_.arena_bytes(request), request.stream);
    }
    if (block != nullptr) owner = block->stream;
  }
  if (block == nullptr) {
    release_idle([](void*) { return true; }, kUnlimited);
    return;
  }
  // The device waits, this thread does not.
  const StreamOrder::Event event = order_.record({device(), owner});
  if (event != nullptr) {
    order_.make_wait({device(), request.stream}, event);
    order_.recycle(event);
  }
  const std::lock_guard lock(mutex_);
  arena->hand_over(block, request.stream);
}

void Pool::bring_strays_home() {
  std::vector<Slabs::Stray> strays;
  {
    const std::lock_guard lock(mutex_);
    strays = central_.slabs().take_strays();
  }
  std::set<void*> waited;
  try {
    for (const Slabs::Stray& stray : strays) {
      if (waited.insert(stray.stream).second) wait_for(stray.stream);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    for (const Slabs::Stray& stray : strays) central_.give(stray.data, stray.stream);
    throw;
  }
  const std::lock_guard lock(mutex_);
  for (const Slabs::Stray& stray : strays) central_.give_home(stray.data);
}

MemoryError Pool::out_of_memory(const AllocationRequest& request) {
  ++failures_;
  const Statistics s = statistics();
  const DeviceMemory memory = upstream_.memory();
  std::vector<Block> holders;
  int64_t small_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    note(HistoryEntry::Kind::kOutOfMemory, request.bytes);
    for (const Arena* arena : central_.arenas()) {
      arena->for_each([&](const Block& block) {
        if (block.state == BlockState::kLive && block.requested > 0) holders.push_back(block);
      });
    }
    small_bytes = central_.slabs().taken_bytes();
  }
  const size_t count = std::min(kHolders, holders.size());
  std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(count),
                    holders.end(),
                    [](const Block& a, const Block& b) { return a.requested > b.requested; });
  std::vector<std::string> largest;
  for (size_t i = 0; i < count; ++i) largest.push_back(describe(holders[i]));
  if (largest.size() < kHolders && small_bytes > 0) {
    largest.push_back(cat(format_bytes(small_bytes), " in small blocks"));
  }

  const int64_t limit = limit_bytes_;
  const int64_t others = std::max<int64_t>(0, memory.total - memory.free - s.reserved_bytes);
  std::string text = cat(
      "memory: ", request.bytes, " bytes were asked of ", device(), " (",
      format_bytes(request.bytes), ") and cannot be served: live ", format_bytes(s.allocated_bytes),
      ", reserved ", format_bytes(s.reserved_bytes),
      limit == kUnlimited ? std::string() : cat(" of a limit of ", format_bytes(limit)),
      ", largest hole ", format_bytes(s.largest_free_bytes), ", fragmentation ", s.fragmentation,
      "; the device has ", format_bytes(memory.total), ", ", format_bytes(memory.free),
      " of it free, other processes and libraries hold ", format_bytes(others));
  if (!largest.empty()) text += cat("; largest holders: ", join(largest));
  return MemoryError(text,
                     {request.bytes, s.allocated_bytes, s.reserved_bytes, s.largest_free_bytes});
}

}  // namespace cuop::memory
