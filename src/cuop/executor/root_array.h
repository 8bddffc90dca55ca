// One array of the root's host as a rank sees it: memory of its own process, or of the root's,
// which it reads and writes through the system. Between that and a GPU several threads move boxes
// at a time, through page-locked memory and no other.
#pragma once

#include <optional>

#include "cuop/core/box.h"
#include "cuop/dist/comm/peer_memory.h"
#include "cuop/dist/exec/exchange.h"

namespace cuop::executor {

class RootArray {
 public:
  /// All of it, or this rank's box of it, in memory of this process.
  explicit RootArray(const dist::Part& part) : near_(part) {}
  /// All of it, in the process of a rank `owner`, counted among all that were started together.
  RootArray(const dist::MemoryAddress& address, const Layout& layout, DType dtype, int owner)
      : far_(Far{address, layout, dtype, owner, memory_order(layout)}) {}

  /// The elements of a box on a device; a view of the array where it lies there.
  Tensor read(const Box& box, Device device) const;
  /// Copies the box to `place`, on any device.
  void read_into(const Box& box, const Tensor& place) const;
  /// The same of a box with rows (of dimension 0) outside of the array, which are zero or, with
  /// `is_wrapped`, those of the opposite side.
  Tensor read_beyond(const Box& box, Device device, bool is_wrapped) const;
  /// The box's elements become those of `tile`, which lies on any device. Other boxes may be
  /// written at the same time.
  void write(const Box& box, const Tensor& tile) const;

  const dist::Part& near() const { return near_; }

 private:
  struct Far {
    dist::MemoryAddress address;  ///< of element (0, 0, ...)
    Layout layout;
    DType dtype;
    int owner;
    Dims order;  ///< of its axes in memory, by which it is read and written
  };
  /// move(runs, before) of the runs of the other process's memory that the elements of a box of
  /// `Far::order` lie in, some at a time: `before` bytes of them came earlier, row-major. Where it
  /// returns false, the owner is blamed, whose memory cannot be `done_to`, "read" or "written", any
  /// more.
  template <class Move>
  void move_far(const Box& box, const char* done_to, const Move& move) const;
  // Between such a box and row-major memory of this process's host.
  void read_far(const Box& box, void* to) const;
  void write_far(const Box& box, const void* from) const;
  int64_t rows() const;  ///< of the array

  dist::Part near_;
  std::optional<Far> far_;
};

}  // namespace cuop::executor
