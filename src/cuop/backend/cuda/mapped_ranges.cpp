#include "cuop/backend/cuda/mapped_ranges.h"

#include <iterator>

#include "cuop/backend/cuda/driver.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

namespace {

std::atomic<uint64_t> last_number = 0;

/// The last entry that begins at `place` or before it; end() when there is none.
template <class Map, class Key>
auto at_or_before(Map& map, const Key& place) {
  auto after = map.upper_bound(place);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

void MappedRanges::add_range(const void* address, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  ranges_[reinterpret_cast<uintptr_t>(address)] = {++last_number, bytes, {}};
}

void MappedRanges::remove_range(const void* address) noexcept {
  const std::lock_guard lock(mutex_);
  ranges_.erase(reinterpret_cast<uintptr_t>(address));
}

void MappedRanges::add(const void* address, int64_t bytes, int64_t piece) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto range = at_or_before(ranges_, begin);
  if (range == ranges_.end()) return;  // in addresses that were not acquired: never exported
  const auto first = static_cast<int64_t>(begin - range->first);
  for (int64_t at = 0; at < bytes; at += piece) {
    const MappedPiece made{++last_number, first + at, piece};
    range->second.pieces[made.offset] = made;
    live_[made.number] = begin + static_cast<uintptr_t>(at);
  }
}

void MappedRanges::remove(const void* address, int64_t bytes) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto range = at_or_before(ranges_, begin);
  if (range == ranges_.end()) return;
  auto& pieces = range->second.pieces;
  const auto first = static_cast<int64_t>(begin - range->first);
  const auto from = pieces.lower_bound(first), to = pieces.lower_bound(first + bytes);
  if (from == to) return;
  for (auto piece = from; piece != to; ++piece) live_.erase(piece->second.number);
  pieces.erase(from, to);
  ++removals_;
}

std::optional<MappedStretch> MappedRanges::find(const void* data, int64_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  const auto range = at_or_before(ranges_, begin);
  if (range == ranges_.end()) return std::nullopt;
  MappedStretch result{
      range->second.number, range->second.bytes, static_cast<int64_t>(begin - range->first), {}};
  const auto& pieces = range->second.pieces;
  auto piece = at_or_before(pieces, result.offset);
  for (int64_t at = result.offset; at < result.offset + bytes; ++piece) {
    if (piece == pieces.end() || piece->first > at) return std::nullopt;
    at = piece->first + piece->second.bytes;
    if (at <= result.offset) return std::nullopt;
    result.pieces.push_back(piece->second);
  }
  return result;
}

Descriptor MappedRanges::export_piece(const MappedPiece& piece) const {
  uintptr_t address = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(piece.number);
    if (found != live_.end()) address = found->second;
  }
  if (address == 0) {
    throw ExecutionError(
        cat("memory: ", piece.bytes, " bytes that are to be exported are not mapped any more"));
  }
  const Driver& d = driver();
  MemoryHandle handle = 0;
  check(d.mem_retain_allocation_handle(&handle, reinterpret_cast<void*>(address)),
        "memory: finding ", piece.bytes, " mapped bytes to export them");
  int file = -1;
  const Result result =
      d.mem_export_to_shareable_handle(&file, handle, ShareableHandle::kPosixFileDescriptor, 0);
  d.mem_release(handle);
  check(result, "memory: exporting ", piece.bytes, " bytes to another process");
  return Descriptor(file);
}

bool MappedRanges::is_live(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return live_.contains(number);
}

}  // namespace cuop::backend::cuda
