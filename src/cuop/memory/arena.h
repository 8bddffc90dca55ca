// Best fit with coalescing over segments of address space, a free list for each stream. Only
// bookkeeping: it takes no lock and calls no upstream; what needs the upstream is begun here, done
// by the caller and finished here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/memory/block.h"

namespace cuop::memory {

class Arena : NonCopyable {
 public:
  struct Options {
    bool can_map = false;  ///< segments start without memory
    int64_t unit = 0;      ///< sizes are multiples of it
    int64_t granule = 0;   ///< the upstream's
    /// Of the addresses in plain memory, whose sizes are cut to it; 1: blocks begin where the
    /// memory does, and a segment holds a block of its own size.
    int64_t plain_alignment = 1;
  };
  /// Memory to be mapped: `range` in transit and, just before it, the free block that it extends.
  struct Growth {
    Block* range = nullptr;
    Block* extended = nullptr;  ///< may be null
  };
  /// Memory to be given back, when the work of all streams that freed pieces of it is over.
  struct Release {
    Block* range = nullptr;
    std::vector<void*> streams;
  };
  using StreamFilter = std::function<bool(void* stream)>;

  explicit Arena(Options options) : options_(options) {}

  /// Puts a range of the upstream to use: free for `stream`, or unmapped when can_map.
  void add_segment(void* range, int64_t bytes, void* stream);

  /// A live block of exactly `bytes` (a multiple of unit) from what is idle on the stream, or null.
  Block* take(int64_t bytes, void* stream);
  /// The block becomes idle on `stream` and joins its neighbours there.
  void give(Block* block, void* stream);
  /// The live block that starts at the address, or null.
  Block* find(const void* address) const;

  /// can_map: addresses for `bytes` on the stream where the least must be mapped; in the stream's
  /// own segments unless `any_segment`. No range when there are none.
  Growth begin_growth(int64_t bytes, void* stream, bool any_segment);
  /// The range is mapped, or was refused.
  void finish_growth(const Growth& growth, bool is_mapped, void* stream);

  /// Idle memory of matching streams in whole granules (plain upstream: whole segments), oldest
  /// first, until `most` bytes; it is in transit until finish_release or drop_segment.
  std::vector<Release> begin_release(const StreamFilter& matches, int64_t most);
  /// can_map: the upstream took the memory away; the addresses may be mapped again.
  void finish_release(Block* block);
  /// Plain upstream: forgets the block's segment and returns it, to be released.
  Segment drop_segment(Block* block);

  /// An idle block of at least `bytes` of another stream, in transit until hand_over: then it is
  /// idle on the new stream, or back on its own when that is the one given.
  Block* begin_transfer(int64_t bytes, void* stream);
  void hand_over(Block* block, void* stream);

  int64_t granule() const { return options_.granule; }
  int64_t free_bytes() const { return free_bytes_; }
  int64_t largest_free() const;
  /// All blocks, segment by segment in order of address.
  void for_each(const std::function<void(const Block&)>& visit) const;
  /// All segments, for giving them back when the arena ends.
  std::vector<Segment> segments() const;

 private:
  using Index = std::set<Block*, BySize>;
  struct SegmentRecord {
    Segment segment;
    Block* first = nullptr;
  };

  Block* new_block(const Block& like);
  void forget(Block* block);
  /// Splits after `bytes` and returns the rest, in the same state. Neither is in an index.
  Block* cut(Block* block, int64_t bytes);
  void add_to_index(Block* block);
  void remove_from_index(Block* block);
  /// Idle neighbours of matching streams, as one range to be given back.
  struct Run {
    Block* first = nullptr;
    Block* last = nullptr;
    uint64_t tick = 0;
  };
  std::vector<Run> idle_runs(const StreamFilter& matches) const;
  Release take_out(const Run& run, std::byte* start, std::byte* end);
  /// Joins the block with like neighbours and puts the result into its index.
  void settle(Block* block);
  Block* absorb(Block* left, Block* right);

  Options options_;
  std::vector<std::unique_ptr<SegmentRecord>> segments_;
  std::unordered_map<void*, Index> free_;  ///< by stream
  Index unmapped_;
  std::unordered_map<const void*, Block*> live_;
  std::deque<Block> blocks_;  ///< storage of all blocks; `spare_` of them are unused
  std::vector<Block*> spare_;
  uint64_t tick_ = 0;
  int64_t free_bytes_ = 0;
};

}  // namespace cuop::memory
