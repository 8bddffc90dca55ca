// Shared boxes of GPUs of several processes of a host, which map each other's memory.
//
// A box stands in a slot of its rank's memory, which the other ranks have mapped for the time of
// the call; what is in it stands in a table that all of them read (box_table.h). A piece is said to
// be there when it is: no stream of one process waits for one of another. Nor does a process hold
// back for another: a slot is filled anew when its owner is done with it, and who has copied from
// it meanwhile finds that out and brings the piece itself. So a process that has died or was
// stopped costs the others no more than a short wait, and what they make is right.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuop/backend/event.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/executor/box_table.h"
#include "cuop/executor/shared_boxes.h"

namespace cuop::executor {

/// Memory for the boxes of an input that a rank shares.
struct BoxRoom {
  int64_t bytes = 0;         ///< of the largest; 0: none is shared
  bool is_changing = false;  ///< they are several, so that the next comes while one is used
};

/// One thread of each rank may call.
class ProcessBoxes final : public SharedBoxes {
 public:
  /// Collective: room for the boxes of each input, in memory of the current resource. Where there
  /// is none a rank offers nothing, and takes from others all the same.
  ProcessBoxes(dist::Communicator& comm, Device device, std::span<const BoxRoom> rooms);
  ~ProcessBoxes() override;

  void release_memory() override;

 protected:
  std::shared_ptr<SharedBox> open(size_t input, DType dtype, const Box& box, Device device,
                                  size_t pieces) override;

 private:
  class Opened;
  using State = BoxTable::State;
  static constexpr size_t kSlots = 2;  ///< of an input

  /// The end of a stream's work with a slot.
  struct Use {
    Stream stream;
    std::shared_ptr<backend::Event> end;
  };
  struct Slot {
    Tensor memory = {};  ///< bytes; undefined: none
    bool is_open = false;
    int64_t number = 0;          ///< of the box in it
    std::vector<Use> used = {};  ///< behind which it is free
  };
  /// A piece of a box in a slot of another rank.
  struct Place {
    int rank = 0;
    size_t slot = 0;
    BoxTable::Found found;
  };

  void connect(dist::Communicator& comm);
  /// That of so many bytes which is free and holds the oldest box; kNone: there is none.
  size_t free_slot(size_t input, int64_t bytes) const;
  /// The place of a piece of such a part that is there, else of one that is about to be.
  std::optional<Place> find_other(size_t input, const Part& part, size_t pieces,
                                  size_t piece) const;
  /// For a rank that brings something, as far as it went on when it was looked at last.
  struct Waiting {
    int rank = -1;
    uint64_t moves = 0;
    std::chrono::steady_clock::time_point since = {};
  };
  /// A while. A rank that has not gone on for long is not waited for any more.
  void wait_for(int rank, Waiting& waiting);

  static constexpr size_t kNone = static_cast<size_t>(-1);
  int rank_;
  std::vector<Slot> slots_;
  int64_t boxes_ = 0;                        ///< that have had a slot
  std::unique_ptr<BoxTable> table_;          ///< null: this rank has no part in it
  std::vector<std::vector<Tensor>> mapped_;  ///< by rank and slot; undefined where it is not read
  std::vector<bool> is_awaited_;             ///< by rank
};

}  // namespace cuop::executor
