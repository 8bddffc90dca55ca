// What a device's upstream has mapped, by numbers that other processes can be told: they map the
// same pieces at the same offsets (imported_range.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cuop/core/descriptor.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

/// Physical memory at its place in a range of addresses; bytes.
struct MappedPiece {
  uint64_t number = 0;  ///< never used again in this process, whatever device it is of
  int64_t offset = 0;   ///< from the beginning of the range
  int64_t bytes = 0;
};

/// A stretch of memory: the range that it lies in, and the pieces that are behind it, in order.
struct MappedStretch {
  uint64_t range = 0;  ///< its number, never used again either
  int64_t range_bytes = 0;
  int64_t offset = 0;  ///< of the stretch within the range
  std::vector<MappedPiece> pieces;
};

/// Of one device. Any thread may call.
class MappedRanges {
 public:
  void add_range(const void* address, int64_t bytes);
  /// Nothing of it is mapped any more.
  void remove_range(const void* address) noexcept;
  /// Pieces of `piece` bytes that have been mapped and can be exported; they lie in a range.
  void add(const void* address, int64_t bytes, int64_t piece);
  /// Before they are unmapped.
  void remove(const void* address, int64_t bytes) noexcept;

  /// Where `bytes` bytes lie; nothing when not all of them can be exported.
  std::optional<MappedStretch> find(const void* data, int64_t bytes) const;
  /// The piece as a file that another process imports. ExecutionError when it is not mapped any
  /// more, or that of the driver that refuses.
  Descriptor export_piece(const MappedPiece& piece) const;
  /// Whether the piece is still mapped.
  bool is_live(uint64_t number) const;
  /// Grows whenever pieces go.
  uint64_t removals() const { return removals_; }

 private:
  struct Range {
    uint64_t number = 0;
    int64_t bytes = 0;
    std::map<int64_t, MappedPiece> pieces;  ///< by offset
  };

  mutable ForkMutex mutex_;
  std::map<uintptr_t, Range> ranges_;   ///< by address
  std::map<uint64_t, uintptr_t> live_;  ///< addresses of pieces by their numbers
  std::atomic<uint64_t> removals_ = 0;
};

}  // namespace cuop::backend::cuda
