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
  Record record{bytes, trace::now_ns(), current_site(), stream};
  const int64_t upstream_bytes = upstream_.statistics().allocated_bytes;
  const std::lock_guard lock(mutex_);
  record.serial = ++last_serial_;
  live_[data] = record;
  freed_.erase(data);
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, without_own(upstream_bytes));
  return data;
}

void GuardResource::deallocate(void* data, int64_t bytes, Stream stream) noexcept {
  if (data == nullptr) return;
  try {
    const bool is_resting = !is_holding_;
    if (is_resting) take_peaks();  // before what is its own becomes less
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
    for (std::string& text : check_zones(block, record)) report(std::move(text));
    record.is_damaged = false;  // of its zones; its poison is whole
    access_.fill(block, kPoisonByte, record.bytes, stream);
    {
      const std::lock_guard lock(mutex_);
      freed_.put(data, record);
      held_.push_back({block, record});
      held_bytes_ += record.bytes;
    }
    release_beyond_bounds();
    if (is_resting) upstream_.reset_peak();
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

int64_t GuardResource::without_own(int64_t upstream_bytes) const {
  const auto live = static_cast<int64_t>(live_.size()), held = static_cast<int64_t>(held_.size());
  const int64_t own = held_bytes_ + guarded(0) * (live + held);
  return std::max(live_bytes_, upstream_bytes - own);
}

Statistics GuardResource::statistics() const {
  Statistics s = upstream_.statistics();
  const std::lock_guard lock(mutex_);
  s.allocated_bytes = without_own(s.allocated_bytes);
  s.peak_allocated_bytes =
      std::max(peak_bytes_, is_holding_ ? s.allocated_bytes : without_own(s.peak_allocated_bytes));
  s.peak_active_bytes = std::max(s.peak_active_bytes, peak_active_bytes_);
  s.peak_reserved_bytes = std::max(s.peak_reserved_bytes, peak_reserved_bytes_);
  s.free_count += static_cast<int64_t>(held_.size());
  return s;
}

void GuardResource::reset_peak() {
  upstream_.reset_peak();
  const int64_t upstream_bytes = upstream_.statistics().allocated_bytes;
  const std::lock_guard lock(mutex_);
  peak_bytes_ = without_own(upstream_bytes);
  peak_active_bytes_ = peak_reserved_bytes_ = 0;
}

void GuardResource::take_peaks() {
  const Statistics s = upstream_.statistics();
  upstream_.reset_peak();
  const std::lock_guard lock(mutex_);
  if (!is_holding_) peak_bytes_ = std::max(peak_bytes_, without_own(s.peak_allocated_bytes));
  peak_active_bytes_ = std::max(peak_active_bytes_, s.peak_active_bytes);
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, s.peak_reserved_bytes);
}

void GuardResource::set_holding(bool is_holding) {
  if (is_holding == is_holding_) return;
  if (!is_holding) release_held(0, 0);
  take_peaks();
  is_holding_ = is_holding;
  if (!is_holding) release_held(0, 0);  // freed meanwhile
}

int64_t GuardResource::release_cached() {
  release_held(0, 0);
  return upstream_.release_cached();
}

std::vector<std::string> GuardResource::check() {
  std::vector<Held> live, held;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [data, record] : live_)
      live.push_back({static_cast<std::byte*>(data), record});
    held.assign(held_.begin(), held_.end());
  }
  check_blocks(live, &GuardResource::find_live, &GuardResource::check_zones);
  check_blocks(held, &GuardResource::find_held, &GuardResource::check_poison);
  release_beyond_bounds();  // what was looked at has stayed
  const std::lock_guard lock(mutex_);
  return reports_;
}

GuardResource::Record* GuardResource::find_live(std::byte* data) {
  const auto entry = live_.find(data);
  return entry == live_.end() ? nullptr : &entry->second;
}

GuardResource::Record* GuardResource::find_held(std::byte* data) {
  const auto held = std::ranges::find(held_, data, &Held::data);
  return held == held_.end() ? nullptr : &held->record;
}

void GuardResource::check_blocks(const std::vector<Held>& blocks,
                                 Record* (GuardResource::*find)(std::byte*),
                                 std::vector<std::string> (GuardResource::*check_block)(std::byte*,
                                                                                        Record&)) {
  for (const Held& block : blocks) {
    std::unique_lock lock(mutex_);
    Record* record = (this->*find)(block.data);
    if (record == nullptr || record->serial != block.record.serial) continue;
    Record seen = *record;
    being_checked_.push_back(block.data);
    lock.unlock();
    std::vector<std::string> wrong;
    const auto end_check = [&] {
      lock.lock();
      being_checked_.erase(std::ranges::find(being_checked_, block.data));
    };
    try {
      wrong = (this->*check_block)(block.data, seen);
    } catch (...) {  // of the device
      end_check();
      throw;
    }
    end_check();
    record = (this->*find)(block.data);
    if (record != nullptr) record->is_damaged = seen.is_damaged;
    lock.unlock();
    for (std::string& text : wrong) report(std::move(text));
  }
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

std::vector<std::string> GuardResource::check_zones(std::byte* data, Record& record) {
  if (record.is_damaged) return {};
  const int64_t before = access_.find_other(data - kZone, kZoneByte, kZone, record.stream);
  const int64_t behind = access_.find_other(data + record.bytes, kZoneByte, kZone, record.stream);
  std::vector<std::string> wrong;
  if (before >= 0) {
    wrong.push_back(cat("somebody wrote before a block, ", kZone - before,
                        " bytes ahead of it: ", describe(record)));
  }
  if (behind >= 0) {
    wrong.push_back(
        cat("somebody wrote behind a block, ", behind, " bytes after its end: ", describe(record)));
  }
  record.is_damaged = !wrong.empty();
  return wrong;
}

std::vector<std::string> GuardResource::check_poison(std::byte* data, Record& record) {
  if (record.is_damaged) return {};
  const int64_t at = access_.find_other(data, kPoisonByte, record.bytes, record.stream);
  record.is_damaged = at >= 0;
  if (at < 0) return {};
  return {cat("somebody wrote into a freed block at byte ", at, ": ", describe(record))};
}

void GuardResource::release_beyond_bounds() noexcept {
  const bool is_holding = is_holding_;
  release_held(is_holding ? kMaxHeldBlocks : 0, is_holding ? kMaxHeldBytes : 0);
}

bool GuardResource::is_being_checked(const std::byte* data) const {
  return std::ranges::find(being_checked_, data) != being_checked_.end();
}

void GuardResource::release_held(size_t most_blocks, int64_t most_bytes) noexcept {
  for (;;) {
    Held oldest;
    {
      const std::lock_guard lock(mutex_);
      if (held_.size() <= most_blocks && held_bytes_ <= most_bytes) return;
      if (held_.empty() || is_being_checked(held_.front().data)) return;
      oldest = held_.front();
      held_.pop_front();
      held_bytes_ -= oldest.record.bytes;
    }
    try {
      for (std::string& text : check_poison(oldest.data, oldest.record)) report(std::move(text));
    } catch (const std::exception& error) {
      log(LogLevel::kWarn, "memory debugging: ", error.what());
    }
    upstream_.deallocate(oldest.data - kZone, guarded(oldest.record.bytes), oldest.record.stream);
  }
}

}  // namespace cuop::memory
