// Small blocks cut from slabs of one size class and stream. Only bookkeeping, like Arena.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cuop/memory/block.h"
#include "cuop/memory/size_class.h"

namespace cuop::memory {

class Slabs {
 public:
  /// Addresses of slabs are multiples of this; it is the key of the page table.
  static constexpr int64_t kPage = int64_t{16} << 10;
  /// Larger classes are blocks of the arena themselves.
  static constexpr int64_t kLargestCut = int64_t{64} << 10;

  /// A block that was given back on another stream than its slab's.
  struct Stray {
    void* data = nullptr;
    void* stream = nullptr;
  };

  explicit Slabs(const SizeClasses& classes) : classes_(classes) {}

  /// Bytes of a new slab of the class.
  int64_t slab_bytes(int size_class) const;
  /// Cuts a block of the arena, of slab_bytes, into blocks that belong to its stream.
  void add(Block* block, int size_class);
  /// Up to `count` idle blocks into `out`; returns how many.
  int take(int size_class, void* stream, void** out, int count);
  bool owns(const void* data) const { return slab_of(data) != nullptr; }
  /// Whether a block of a slab starts there.
  bool has_block(const void* data) const;
  /// The block is idle on `stream`. Returns the slab's memory when all of it is idle and the class
  /// has another slab to serve from: it belongs to the arena again.
  Block* give(void* data, void* stream);
  /// Strays, which are in no list from now on. When the work of their stream is over, give_home
  /// makes them idle on the stream of their slab.
  std::vector<Stray> take_strays();
  Block* give_home(void* data) { return give(data, slab_of(data)->block->stream); }
  /// Slabs that are wholly idle; their memory belongs to the arena again.
  std::vector<Block*> take_empty();

  int64_t idle_bytes() const { return idle_bytes_; }
  /// Live or in a thread's cache.
  int64_t taken_bytes() const { return taken_bytes_; }
  /// Bytes of the largest idle block.
  int64_t largest_idle() const;

 private:
  struct Slab {
    Block* block = nullptr;
    int size_class = 0;
    int total = 0;
    std::vector<uint16_t> idle;  ///< numbers of idle blocks
    int position = -1;           ///< in its list of slabs with idle blocks; -1: it has none
  };
  struct Lists {
    std::vector<Slab*> partial;  ///< slabs with idle blocks
    std::vector<void*> strays;   ///< idle blocks of slabs of other streams
  };

  Slab* slab_of(const void* data) const;
  Lists& lists(int size_class, void* stream);
  void enlist(Slab* slab);
  void delist(Slab* slab);
  Block* remove(Slab* slab);

  SizeClasses classes_;
  std::unordered_map<uintptr_t, Slab*> pages_;
  std::unordered_map<Slab*, std::unique_ptr<Slab>> slabs_;
  std::unordered_map<void*, std::vector<Lists>> lists_;  ///< by stream, then class
  int64_t idle_bytes_ = 0;
  int64_t taken_bytes_ = 0;
};

}  // namespace cuop::memory
