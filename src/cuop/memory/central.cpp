#include "cuop/memory/central.h"

#include <algorithm>
#include <limits>

namespace cuop::memory {

namespace {

/// Blocks above the classes are multiples of this: a sixteenth of the smallest at most is wasted.
constexpr int64_t kLargeUnit = int64_t{64} << 10;

}  // namespace

Central::Central(const SizeClasses& classes, Options options)
    : classes_(classes),
      huge_bytes_(options.large_granule > options.granule ? options.large_granule
                                                          : std::numeric_limits<int64_t>::max()),
      small_({options.can_map, Slabs::kPage, options.granule, Slabs::kPage}),
      large_({options.can_map, kLargeUnit, options.granule}),
      huge_({options.can_map, kLargeUnit, options.large_granule}),
      slabs_(classes) {}

Arena& Central::arena(const AllocationRequest& request) {
  if (!is_large(request)) return small_;
  return request.bytes < huge_bytes_ ? large_ : huge_;
}

AllocationRequest Central::request(int64_t bytes, void* stream) const {
  AllocationRequest result;
  result.bytes = bytes;
  result.stream = stream;
  result.size_class = bytes <= SizeClasses::kLargest ? classes_.index(bytes) : -1;
  return result;
}

int64_t Central::arena_bytes(const AllocationRequest& request) const {
  if (is_large(request)) return round_up(request.bytes, kLargeUnit);
  return is_cut_from_slab(request) ? slabs_.slab_bytes(request.size_class)
                                   : classes_.bytes(request.size_class);
}

void* Central::take(const AllocationRequest& request) {
  void* data = nullptr;
  if (is_cut_from_slab(request) && take_more(request, &data, 1) == 1) return data;
  const int64_t bytes = arena_bytes(request);
  Block* block = arena(request).take(bytes, request.stream);
  if (Arena* second = second_arena(request); block == nullptr && second != nullptr) {
    block = second->take(bytes, request.stream);
  }
  if (block == nullptr) return nullptr;
  if (is_cut_from_slab(request)) {
    slabs_.add(block, request.size_class);
    take_more(request, &data, 1);
    return data;
  }
  block->requested = request.bytes;
  block->since_ns = request.since_ns;
  block->site = request.site;
  return block->address;
}

int Central::take_more(const AllocationRequest& request, void** out, int count) {
  if (!is_cut_from_slab(request)) return 0;
  return slabs_.take(request.size_class, request.stream, out, count);
}

bool Central::give(void* data, void* stream) {
  if (slabs_.owns(data)) {
    Block* emptied = slabs_.give(data, stream);
    if (emptied != nullptr) small_.give(emptied, emptied->stream);
    return true;
  }
  for (Arena* owner : arenas()) {
    Block* block = owner->find(data);
    if (block == nullptr) continue;
    owner->give(block, stream);
    return true;
  }
  return false;
}

bool Central::owns(const void* data) const {
  if (slabs_.has_block(data)) return true;
  for (const Arena* arena : arenas()) {
    if (arena->find(data) != nullptr) return true;
  }
  return false;
}

void Central::give_home(void* data) {
  Block* emptied = slabs_.give_home(data);
  if (emptied != nullptr) small_.give(emptied, emptied->stream);
}

void Central::collect_slabs() {
  for (Block* block : slabs_.take_empty()) small_.give(block, block->stream);
}

int64_t Central::free_bytes() const {
  int64_t bytes = 0;
  for (const Arena* arena : arenas()) bytes += arena->free_bytes();
  return bytes;
}

int64_t Central::largest_idle() const {
  int64_t largest = slabs_.largest_idle();
  for (const Arena* arena : arenas()) largest = std::max(largest, arena->largest_free());
  return largest;
}

}  // namespace cuop::memory
