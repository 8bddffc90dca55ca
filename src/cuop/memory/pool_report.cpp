// A pool's figures, its limits and its snapshot.
#include <algorithm>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"

namespace cuop::memory {

void Pool::collect_counts() const {
  for (const auto& cache : caches_) {
    if (!cache->claim_patiently()) continue;
    const ThreadCache::Counts counts = cache->take_counts();
    cache->unclaim();
    count_use(counts.live, counts.live_peak);
    allocations_ += counts.allocations;
    frees_ += counts.frees;
  }
}

Statistics Pool::statistics() const {
  Statistics s;
  const std::lock_guard lock(mutex_);
  collect_counts();
  int64_t cached = 0, largest_cached = 0;
  for (const auto& cache : caches_) {
    if (!cache->claim_patiently()) continue;
    cached += cache->idle_bytes();
    largest_cached = std::max(largest_cached, cache->largest_idle());
    cache->unclaim();
  }
  s.allocated_bytes = usage_.live();
  s.peak_allocated_bytes = usage_.peak();
  s.peak_active_bytes = active_.peak();
  s.reserved_bytes = reserved_;
  s.peak_reserved_bytes = peak_reserved_;
  s.thread_cached_bytes = cached;
  s.cached_bytes = central_.idle_bytes() + cached;
  s.largest_free_bytes = std::max(central_.largest_idle(), largest_cached);
  if (s.cached_bytes > 0) {
    s.fragmentation =
        1.0 - static_cast<double>(s.largest_free_bytes) / static_cast<double>(s.cached_bytes);
  }
  s.allocation_count = allocations_;
  s.free_count = frees_;
  s.out_of_memory_count = failures_;
  s.pending_bytes = pending_bytes_;
  s.capacity_bytes = capacity();
  s.map_count = maps_;
  s.unmap_count = unmaps_;
  s.waits_for_pending = reclaim_steps_[0];
  s.cache_flushes = reclaim_steps_[1];
  s.idle_releases = reclaim_steps_[2];
  s.takes_from_streams = reclaim_steps_[3];
  s.callback_calls = reclaim_steps_[4];
  return s;
}

void Pool::reset_peak() {
  const std::lock_guard lock(mutex_);
  collect_counts();
  usage_.reset_peak();
  active_.reset_peak();
  peak_reserved_ = reserved_;
}

int64_t Pool::release_cached() {
  finish_pending({});
  flush_thread_caches({});
  bring_strays_home();
  return release_idle([](void*) { return true; }, kUnlimited);
}

int64_t Pool::capacity() const {
  return std::min(limit_bytes_.load(std::memory_order_relaxed), total_bytes_);
}

void check_fraction(double fraction) {
  if (fraction > 0.0 && fraction <= 1.0) return;
  throw ExecutionError(
      cat("memory fraction: ", fraction, " is not a part of the device; give 0 < fraction <= 1"));
}

void check_bound(const char* what, int64_t bytes) {
  if (bytes < 0) throw ExecutionError(cat(what, ": ", bytes, " bytes; give 0 or more"));
}

void Pool::set_limit(int64_t bytes) {
  check_bound("memory limit", bytes);
  limit_bytes_ = bytes;
  int64_t excess = 0;
  {
    const std::lock_guard lock(mutex_);
    excess = reserved_ - capacity();
  }
  if (excess <= 0) return;
  flush_thread_caches({});
  release_idle([](void*) { return true; }, excess);
}

void Pool::set_fraction(double fraction) {
  check_fraction(fraction);
  set_limit(fraction == 1.0 ? kUnlimited
                            : static_cast<int64_t>(fraction * static_cast<double>(total_bytes_)));
}

void Pool::set_cache_size(int64_t bytes) {
  check_bound("cache size", bytes);
  cache_bytes_ = bytes;
  trim();
}

void Pool::set_callback(MemoryCallback callback, std::vector<double> thresholds) {
  callback_.set(std::move(callback), std::move(thresholds));
}

PoolSnapshot Pool::snapshot() const {
  PoolSnapshot result;
  result.device = cat(device());
  result.upstream = upstream_.name();
  result.statistics = statistics();
  result.memory = upstream_.memory();
  const int64_t now = trace::now_ns();
  const std::lock_guard lock(mutex_);
  for (const Arena* arena : std::as_const(central_).arenas()) {
    arena->for_each([&](const Block& block) {
      if (block.before == nullptr) result.segments.emplace_back();
      BlockReport report;
      report.address = reinterpret_cast<uintptr_t>(block.address);
      report.bytes = block.bytes;
      report.state = block.state;
      report.stream = reinterpret_cast<uintptr_t>(block.stream);
      if (block.state == BlockState::kLive) {
        report.requested = block.requested;
        report.age_s = block.requested > 0 ? static_cast<double>(now - block.since_ns) * 1e-9 : 0.0;
        report.site = site_name(block.site);
      }
      result.segments.back().push_back(std::move(report));
    });
  }
  result.history = history_.entries();
  return result;
}

}  // namespace cuop::memory
