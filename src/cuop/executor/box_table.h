// What the processes of a host tell each other of the boxes that they share: a table in memory of
// the host that all of them have mapped. Each writes its own rows, which the others read at any
// time. Nothing in it is trusted, and nobody waits for it: a process that has died or was stopped
// leaves a row that says what it said last.
//
// A row is a slot of a rank's GPU memory. Its version is odd while a box is on offer in the slot
// and changes whenever that begins or ends: who has copied from the slot and finds the version that
// he began with has copied the box.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "cuop/core/box.h"
#include "cuop/core/noncopyable.h"
#include "cuop/executor/shared_boxes.h"
#include "cuop/memory/shared_memory.h"

namespace cuop::executor {

struct BoxTableSize {
  int ranks = 1;
  size_t slots = 0;  ///< of each
};

class BoxTable : NonCopyable {
 public:
  enum class State : uint8_t { kAbsent, kComing, kThere };

  static int64_t bytes(BoxTableSize size);
  /// Over memory that was all zero before the first table was made of it.
  BoxTable(std::shared_ptr<memory::SharedMemory> memory, BoxTableSize size);

  // A rank's own rows.
  /// Puts a box on offer of which nothing is there yet.
  void offer(int rank, size_t slot, const Box& box, size_t pieces);
  /// Ends that; nothing where there is none.
  void withdraw(int rank, size_t slot);
  void set(int rank, size_t slot, size_t piece, State state);

  // Anybody's.
  /// A piece of a box that is on offer.
  struct Found {
    State state = State::kAbsent;
    uint64_t version = 0;
  };
  /// Nothing where another box is on offer, or none.
  std::optional<Found> find(int rank, size_t slot, const Box& box, size_t pieces,
                            size_t piece) const;
  uint64_t version(int rank, size_t slot) const;
  /// Another number whenever the rank has gone on with anything.
  uint64_t moves(int rank) const { return of(rank).moves.load(); }

 private:
  struct alignas(128) Rank {
    std::atomic<uint64_t> moves;
  };
  struct alignas(128) Row {
    std::atomic<uint64_t> version;
    std::atomic<int64_t> dims, pieces;
    std::array<std::atomic<int64_t>, kMaxDims> low, high;
    std::array<std::atomic<State>, kMostPieces> states;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                std::atomic<State>::is_always_lock_free);

  Rank& of(int rank) const;
  Row& row(int rank, size_t slot) const;

  std::shared_ptr<memory::SharedMemory> memory_;
  BoxTableSize size_;
};

}  // namespace cuop::executor
