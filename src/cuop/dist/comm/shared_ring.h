// A queue of slots from one process to another of its host, in memory that both have mapped: the
// sender fills the slots in turn, the receiver empties them in that order. Neither ever waits, and
// what was filled stays there when its sender is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuop::dist {

/// What stands in a slot beside its bytes.
struct SlotNote {
  int64_t call = 0;      ///< the number of the call that the bytes belong to
  int64_t bytes = 0;     ///< that go this way in the call, in all its slots
  uint64_t content = 0;  ///< a digest of what they are
};

/// One end of a ring. Both ends are made over the same memory, zeroed before.
class SharedRing {
 public:
  static constexpr int64_t kSlots = 4;
  static int64_t memory_bytes(int64_t slot_bytes);

  SharedRing(void* memory, int64_t slot_bytes);

  int64_t slot_bytes() const { return slot_bytes_; }

  /// Of the sender: room for slot_bytes(), null while the receiver has yet to empty it.
  std::byte* free_slot();
  /// Hands the free slot over.
  void fill(const SlotNote& note);

  /// Of the receiver: what was filled and not emptied yet, null when there is nothing.
  std::byte* filled_slot();
  SlotNote note() const;  ///< of the filled slot
  void empty();

 private:
  struct Ends;
  struct Slot;
  Slot& slot(int64_t number) const;

  Ends& ends_;
  std::byte* slots_;
  int64_t slot_bytes_;
  int64_t done_ = 0;  ///< slots that this end has filled or emptied
  int64_t seen_ = 0;  ///< that the other one had when it was last looked at
};

}  // namespace cuop::dist
