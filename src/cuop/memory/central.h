// What stands behind a pool's lock: slabs of small blocks over one arena, larger blocks in others.
// Only bookkeeping, like its parts.
#pragma once

#include <array>
#include <cstdint>

#include "cuop/memory/arena.h"
#include "cuop/memory/slabs.h"

namespace cuop::memory {

/// An allocation as the pool sees it.
struct AllocationRequest {
  int64_t bytes = 0;
  void* stream = nullptr;
  int size_class = -1;  ///< -1: larger than every class
  int64_t since_ns = 0;
  uint32_t site = 0;
};

class Central {
 public:
  /// The granules are the upstream's, see there.
  struct Options {
    bool can_map = false;
    int64_t granule = 0;
    int64_t large_granule = 0;
  };
  Central(const SizeClasses& classes, Options options);

  AllocationRequest request(int64_t bytes, void* stream) const;
  /// Memory from what is idle on the request's stream, or null.
  void* take(const AllocationRequest& request);
  /// More blocks of a class that slabs serve, from those that are idle; returns how many.
  int take_more(const AllocationRequest& request, void** out, int count);
  /// Makes live memory idle on the stream; false when no live block starts there.
  bool give(void* data, void* stream);
  /// Whether one of the arenas' live blocks or a block of a slab starts there.
  bool owns(const void* data) const;
  /// A stray (Slabs::take_strays) becomes idle on the stream of its slab.
  void give_home(void* data);
  /// Gives slabs that are wholly idle to their arena.
  void collect_slabs();

  /// Where the request's memory would come from, and in what amount, when nothing idle fits.
  Arena& arena(const AllocationRequest& request);
  /// Where it may come from as well, in smaller granules: when the large ones do not fit into what
  /// is left of the device or the limit. Null when there is no such place.
  Arena* second_arena(const AllocationRequest& request) {
    return &arena(request) == &huge_ ? &large_ : nullptr;
  }
  int64_t arena_bytes(const AllocationRequest& request) const;
  Slabs& slabs() { return slabs_; }
  const Slabs& slabs() const { return slabs_; }
  std::array<Arena*, 3> arenas() { return {&huge_, &large_, &small_}; }
  std::array<const Arena*, 3> arenas() const { return {&huge_, &large_, &small_}; }

  /// Idle bytes of the arenas, which can be returned to the system.
  int64_t free_bytes() const;
  /// All idle bytes: of arenas and of slabs.
  int64_t idle_bytes() const { return free_bytes() + slabs_.idle_bytes(); }
  int64_t largest_idle() const;

 private:
  static bool is_large(const AllocationRequest& request) { return request.size_class < 0; }
  bool is_cut_from_slab(const AllocationRequest& request) const {
    return !is_large(request) && classes_.bytes(request.size_class) <= Slabs::kLargestCut;
  }

  SizeClasses classes_;
  int64_t huge_bytes_;  ///< from here on blocks stand in pieces of the large granule
  Arena small_;
  Arena large_;
  Arena huge_;
  Slabs slabs_;
};

}  // namespace cuop::memory
