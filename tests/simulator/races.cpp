#include "tests/simulator/races.h"

#include <algorithm>
#include <bit>

#include "cuop/core/text.h"

namespace cuop::simulator {

void Races::begin_launch() {
  // Records of earlier launches are nobody's, by the numbers of their blocks.
  past_ += static_cast<uint32_t>(blocks_.size());
  blocks_.clear();
  moment_ = 0;
  if (pages_.size() <= kKeptPages && past_ < UINT32_MAX / 2) return;
  pages_.clear();
  near_.fill({});
  past_ = 0;
}

void Races::begin_block(const Index3& block, uintptr_t shared_begin, uintptr_t shared_end) {
  blocks_.push_back({block});
  ++moment_;
  warp_clocks_.fill(0);
  shared_begin_ = shared_begin;
  shared_end_ = shared_end;
}

Races::Page& Races::page_at(uintptr_t number) {
  NearPage& near = near_[number % kNearPages];
  if (near.number != number) near = {number, &pages_[number]};
  Page& page = *near.page;
  if (page.past != past_) {
    page.past = past_;
    page.unit = kMostUnit;
  }
  return page;
}

void Races::divide(Page& page, uint32_t unit) {
  const uint32_t count = kPageBytes >> unit;
  page.uses.resize(std::max<size_t>(page.uses.size(), count));
  for (uint32_t i = count; i-- > 0;) page.uses[i] = page.uses[i >> (page.unit - unit)];
  page.unit = unit;
}

std::string Races::use(Access access, uintptr_t address, uintptr_t bytes, unsigned thread) {
  BlockPast& own = blocks_.back();
  if (access == Access::kFence) {
    own.fence = moment_;
    return "";
  }
  const unsigned warp = thread / kWarpThreads;
  const bool is_shared = address >= shared_begin_ && address < shared_end_;
  const bool is_atomic = access == Access::kAtomic;
  const Use now{past_ + static_cast<uint32_t>(blocks_.size()),
                moment_,
                warp_clocks_[warp],
                static_cast<uint16_t>(thread),
                static_cast<uint8_t>(warp),
                is_atomic};
  if (is_atomic && !is_shared) {
    own.atomic = moment_;
    own.atomic_thread = thread;
  }
  const uintptr_t end = address + bytes;
  const auto unit = static_cast<uint32_t>(std::countr_zero(address | bytes | 1u << kMostUnit));
  while (address < end) {
    Page& page = page_at(address / kPageBytes);
    if (unit < page.unit) divide(page, unit);
    const uintptr_t first = address % kPageBytes;
    const uintptr_t used = std::min(end - address, kPageBytes - first);
    Uses* uses = page.uses.data() + (first >> page.unit);
    for (const Uses* last = uses + (used >> page.unit); uses != last; ++uses) {
      if (is_unordered(uses->write, now, is_shared)) {
        return cat(access == Access::kRead ? "reads" : "writes", " what ", name(uses->write),
                   " wrote");
      }
      if (access == Access::kRead) {
        remember_read(uses->read, now);
        continue;
      }
      if (is_unordered(uses->read, now, is_shared)) {
        return cat("writes what ", name(uses->read), " read");
      }
      uses->write = now;
    }
    address += used;
  }
  return "";
}

inline bool Races::is_unordered(const Use& before, const Use& now, bool is_shared) const {
  if (before.block <= past_ || (before.is_atomic && now.is_atomic)) return false;
  // The next block finds the shared memory as if it were new.
  if (before.block != now.block) return !is_shared && !is_behind(before, now);
  if (before.moment != now.moment) return false;
  if (before.warp != now.warp) return true;
  return before.clock == now.clock && before.thread != now.thread;
}

bool Races::is_behind(const Use& before, const Use& now) const {
  const BlockPast &theirs = block(before), &own = block(now);
  const bool is_told = theirs.atomic > before.moment ||
                       (theirs.atomic == before.moment && theirs.atomic_thread == before.thread);
  const bool is_written = before.is_atomic || theirs.fence >= before.moment;
  const bool is_heard =
      own.atomic > 0 &&
      (own.atomic < now.moment || (own.atomic == now.moment && own.atomic_thread == now.thread));
  return is_told && is_written && is_heard;
}

inline void Races::remember_read(Use& read, const Use& now) {
  if (read.block != now.block || read.moment != now.moment) {
    read = now;
  } else if (read.warp != now.warp) {
    read.warp = kManyWarps;
  } else if (read.clock != now.clock) {
    read = now;
  } else if (read.thread != now.thread) {
    read.thread = kMany;
  }
}

std::string Races::name(const Use& use) const {
  const Index3 b = block(use).index;
  const std::string who =
      use.thread == kMany || use.warp == kManyWarps ? "threads" : cat("thread ", use.thread);
  return cat(who, " of block (", b.x, ", ", b.y, ", ", b.z, ')');
}

}  // namespace cuop::simulator
