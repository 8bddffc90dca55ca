#include "cuop/memory/guard.h"

#include <algorithm>
#include <cstring>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/memory/sites.h"

namespace cuop::memory {

namespace {

constexpr size_t kMaxReports = 1000;

/// The back zone fills the block up, so that the first byte behind it is watched.
int64_t guarded(int64_t bytes) { return bytes + 2 * GuardResource::kZone; }

/// In seconds, of which milliseconds are told.
double age_s(int64_t since_ns) {
  return static_cast<double>((trace::now_ns() - since_ns) / 1'000'000) / 1000.0;
}

}  // namespace

void HostBytes::fill(void* data, int value, int64_t bytes, Stream) {
  std::memset(data, value, static_cast<size_t>(bytes));
}

int64_t HostBytes::find_other(const void* data, int value, int64_t bytes, Stream) {
  const auto* first = static_cast<const unsigned char*>(data);
  const auto* end = first + bytes;
  const auto* other = std::find_if(first, end, [&](unsigned char c) { return c != value; });
  return other == end ? -1 : other - first;
}

void* GuardResource::allocate(int64_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (bytes < 0 || bytes > INT64_MAX - 2 * kZone) return upstream_.allocate(bytes, stream);
  void* outer = nullptr;
  try {
    outer = upstream_.allocate(guarded(bytes), stream);
  } catch (const MemoryError&) {
    // Freed blocks that are only held for looking at go first.
    release_held(0, 0);
    try {
      outer = upstream_.allocate(guarded(bytes), stream);
    } catch (const MemoryError& error) {
      MemoryError::Figures figures = error.figures();
      figures.requested = bytes;
      throw MemoryError(cat(error.what(), "; ", guarded(0), " of the bytes are red zones"),
                        figures);
    }
  }
  auto* data = static_cast<std::byte*>(outer) + kZone;
  access_.fill(data - kZone, kZoneByte, kZone, stream);
  access_.fill(data, kFreshByte, bytes, stream);
  access_.fill(data + bytes, kZoneByte, kZone, stream);
  const Record record{bytes, trace::now_ns(), current_site(), stream};
  const std::lock_guard lock(mutex_);
  live_[data] = record;
  freed_.erase(data);
  live_bytes_ += bytes;
  return data;
}

void GuardResource::deallocate(void* data, int64_t bytes, Stream stream) noexcept {
  if (data == nullptr) return;
  try {
    Record record;
    std::string wrong;
    {
      const std::lock_guard lock(mutex_);
      const auto entry = live_.find(data);
      if (entry != live_.end()) {
        record = entry->second;
        live_bytes_ -= record.bytes;
        live_.erase(entry);
      } else if (const Record* before = freed_.find(data)) {
        wrong = cat("a block was freed twice: ", describe(*before));
      } else {
        wrong = cat("a block that was never allocated was freed (", bytes, " bytes, as told)");
      }
    }
    if (!wrong.empty()) return report(std::move(wrong));
    auto* block = static_cast<std::byte*>(data);
    if (bytes != record.bytes) {
      report(cat("a block was freed as one of ", bytes, " bytes: ", describe(record)));
    }
    record.stream = stream;
    check_zones(block, record);
    access_.fill(block, kPoisonByte, record.bytes, stream);
    {
      const std::lock_guard lock(mutex_);
      freed_.put(data, record);
      held_.push_back({block, record});
      held_bytes_ += record.bytes;
    }
    release_held(kMaxHeldBlocks, kMaxHeldBytes);
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, "memory debugging: ", error.what());
  }
}

void GuardResource::record_stream(void* data, Stream stream) {
  bool is_guarded = false;
  {
    const std::lock_guard lock(mutex_);
    is_guarded = live_.contains(data);
  }
  // Others were allocated before the guard was there.
  upstream_.record_stream(is_guarded ? static_cast<std::byte*>(data) - kZone : data, stream);
}

Statistics GuardResource::statistics() const {
  Statistics s = upstream_.statistics();
  const std::lock_guard lock(mutex_);
  s.allocated_bytes = live_bytes_;
  return s;
}

int64_t GuardResource::release_cached() {
  release_held(0, 0);
  return upstream_.release_cached();
}

std::vector<std::string> GuardResource::check() {
  std::unordered_map<void*, Record> live;
  std::deque<Held> held;
  {
    const std::lock_guard lock(mutex_);
    live = live_;
    held = held_;
  }
  for (auto& [data, record] : live) {
    const bool was_damaged = record.is_damaged;
    check_zones(static_cast<std::byte*>(data), record);
    if (record.is_damaged == was_damaged) continue;
    const std::lock_guard lock(mutex_);
    const auto entry = live_.find(data);
    if (entry != live_.end()) entry->second.is_damaged = true;
  }
  for (Held& block : held) {
    if (block.record.is_damaged) continue;
    check_poison(block);
    if (!block.record.is_damaged) continue;
    const std::lock_guard lock(mutex_);
    for (Held& known : held_) {
      if (known.data == block.data) known.record.is_damaged = true;
    }
  }
  const std::lock_guard lock(mutex_);
  return reports_;
}

std::vector<GuardResource::Leak> GuardResource::leaks() const {
  std::vector<Leak> result;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [data, record] : live_) {
      result.push_back({record.bytes, age_s(record.since_ns), site_name(record.site)});
    }
  }
  std::sort(result.begin(), result.end(),
            [](const Leak& a, const Leak& b) { return a.bytes > b.bytes; });
  return result;
}

std::string GuardResource::describe(const Record& record) const {
  const std::string site = site_name(record.site);
  return cat(format_bytes(record.bytes), " allocated ", site.empty() ? "" : "at " + site + ", ",
             age_s(record.since_ns), " s ago");
}

void GuardResource::report(std::string text) noexcept {
  log(LogLevel::kWarn, "memory debugging: ", text);
  const std::lock_guard lock(mutex_);
  if (reports_.size() < kMaxReports) reports_.push_back(std::move(text));
}

void GuardResource::check_zones(std::byte* data, Record& record) {
  if (record.is_damaged) return;
  const int64_t before = access_.find_other(data - kZone, kZoneByte, kZone, record.stream);
  const int64_t behind = access_.find_other(data + record.bytes, kZoneByte, kZone, record.stream);
  if (before >= 0) {
    report(cat("somebody wrote before a block, ", kZone - before,
               " bytes ahead of it: ", describe(record)));
  }
  if (behind >= 0) {
    report(
        cat("somebody wrote behind a block, ", behind, " bytes after its end: ", describe(record)));
  }
  record.is_damaged = before >= 0 || behind >= 0;
}

void GuardResource::check_poison(Held& held) {
  if (held.record.is_damaged) return;
  const int64_t at =
      access_.find_other(held.data, kPoisonByte, held.record.bytes, held.record.stream);
  held.record.is_damaged = at >= 0;
  if (at >= 0) {
    report(cat("somebody wrote into a freed block at byte ", at, ": ", describe(held.record)));
  }
}

void GuardResource::release_held(size_t most_blocks, int64_t most_bytes) noexcept {
  for (;;) {
    Held oldest;
    {
      const std::lock_guard lock(mutex_);
      if (held_.size() <= most_blocks && held_bytes_ <= most_bytes) return;
      if (held_.empty()) return;
      oldest = held_.front();
      held_.pop_front();
      held_bytes_ -= oldest.record.bytes;
    }
    try {
      check_poison(oldest);
    } catch (const std::exception& error) {
      log(LogLevel::kWarn, "memory debugging: ", error.what());
    }
    upstream_.deallocate(oldest.data - kZone, guarded(oldest.record.bytes), oldest.record.stream);
  }
}

}  // namespace cuop::memory
