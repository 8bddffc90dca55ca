#include "tests/simulator/races.h"

#include "cuop/core/text.h"

namespace cuop::simulator {

void Races::begin_launch() {
  pages_.clear();
  last_page_ = nullptr;
  blocks_.clear();
  moment_ = 0;
}

void Races::begin_block(const Index3& block, uintptr_t shared_begin, uintptr_t shared_end) {
  blocks_.push_back({block});
  ++moment_;
  warp_clocks_.fill(0);
  shared_begin_ = shared_begin;
  shared_end_ = shared_end;
}

Races::Byte& Races::at(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  if (last_page_ == nullptr || number != last_number_) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_number_ = number;
  }
  return (*last_page_)[address % kPageBytes];
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
  const Use now{static_cast<uint32_t>(blocks_.size()),
                moment_,
                warp_clocks_[warp],
                static_cast<uint16_t>(thread),
                static_cast<uint16_t>(warp),
                is_atomic};
  if (is_atomic && !is_shared) {
    own.atomic = moment_;
    own.atomic_thread = thread;
  }
  for (uintptr_t i = 0; i < bytes; ++i) {
    Byte& byte = at(address + i);
    if (is_unordered(byte.write, now, is_shared)) {
      return cat(access == Access::kRead ? "reads" : "writes", " what ", name(byte.write),
                 " wrote");
    }
    if (access == Access::kRead) {
      remember_read(byte.read, now);
      continue;
    }
    if (is_unordered(byte.read, now, is_shared)) {
      return cat("writes what ", name(byte.read), " read");
    }
    byte.write = now;
  }
  return "";
}

bool Races::is_unordered(const Use& before, const Use& now, bool is_shared) const {
  if (before.block == 0 || (before.is_atomic && now.is_atomic)) return false;
  // The next block finds the shared memory as if it were new.
  if (before.block != now.block) return !is_shared && !is_behind(before, now);
  if (before.moment != now.moment) return false;
  if (before.warp != now.warp) return true;
  return before.clock == now.clock && before.thread != now.thread;
}

bool Races::is_behind(const Use& before, const Use& now) const {
  const BlockPast& theirs = blocks_[before.block - 1];
  const BlockPast& own = blocks_[now.block - 1];
  const bool is_told = theirs.atomic > before.moment ||
                       (theirs.atomic == before.moment && theirs.atomic_thread == before.thread);
  const bool is_written = before.is_atomic || theirs.fence >= before.moment;
  const bool is_heard =
      own.atomic > 0 &&
      (own.atomic < now.moment || (own.atomic == now.moment && own.atomic_thread == now.thread));
  return is_told && is_written && is_heard;
}

void Races::remember_read(Use& read, const Use& now) {
  if (read.block != now.block || read.moment != now.moment) {
    read = now;
  } else if (read.warp != now.warp) {
    read.warp = kMany;
  } else if (read.clock != now.clock) {
    read = now;
  } else if (read.thread != now.thread) {
    read.thread = kMany;
  }
}

std::string Races::name(const Use& use) const {
  const Index3 b = blocks_[use.block - 1].index;
  const std::string who =
      use.thread == kMany || use.warp == kMany ? "threads" : cat("thread ", use.thread);
  return cat(who, " of block (", b.x, ", ", b.y, ", ", b.z, ')');
}

}  // namespace cuop::simulator
