// Pieces of address ranges. The blocks of a segment tile it without gaps, in order of address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuop/core/divide_up.h"

namespace cuop::memory {

enum class BlockState : uint8_t {
  kLive,       ///< handed out
  kFree,       ///< idle, memory behind it, reusable by its stream
  kUnmapped,   ///< addresses without memory
  kInTransit,  ///< held by somebody who maps, unmaps or transfers it outside the lock
};

/// One range of addresses taken from the upstream.
struct Segment {
  void* acquired = nullptr;  ///< as the upstream gave it
  int64_t acquired_bytes = 0;
  int64_t bytes = 0;       ///< of it in use: the first block starts at an aligned address
  void* stream = nullptr;  ///< for which it was acquired; others use it when in need
};

struct Block {
  std::byte* address = nullptr;
  int64_t bytes = 0;
  BlockState state = BlockState::kFree;
  void* stream = nullptr;  ///< whose work orders its use
  Segment* segment = nullptr;
  Block* before = nullptr;  ///< neighbours in the segment
  Block* behind = nullptr;
  int64_t requested = 0;   ///< live: bytes the caller asked for
  int64_t since_ns = 0;    ///< live: when it was handed out
  uint32_t site = 0;       ///< live: where, see sites.h; 0 unknown
  uint64_t idle_tick = 0;  ///< free: larger means freed later

  std::byte* end() const { return address + bytes; }
};

/// Order of best fit: the smallest that is large enough, the lowest address of equals.
struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};

}  // namespace cuop::memory
