// Shared boxes of GPUs that threads of this process drive: their streams wait for each other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/backend/event.h"
#include "cuop/executor/shared_boxes.h"

namespace cuop::executor {

/// Any threads may call.
class ThreadBoxes final : public SharedBoxes {
 protected:
  std::shared_ptr<SharedBox> open(size_t input, DType dtype, const Box& box, Device device,
                                  size_t pieces) override;

 private:
  class Offer;
  enum class State : uint8_t { kAbsent, kComing, kThere };
  struct Piece {
    State state = State::kAbsent;
    std::shared_ptr<const backend::Event> there = {};  ///< of the stream that fills it
  };
  struct Entry {
    size_t input;
    Part part;  ///< whose tensor it keeps
    Stream stream;
    std::vector<Piece> pieces;
    std::vector<std::shared_ptr<const backend::Event>> copied = {};  ///< by other GPUs, their marks
  };
  using Entries = std::list<Entry>;

  /// Another GPU's entry of the same box that has the piece, else one that is about to; the end
  /// where there is none. Under the lock.
  Entries::iterator find_other(const Entry& mine, size_t piece);

  std::mutex mutex_;
  std::condition_variable changed_;
  Entries entries_;
};

}  // namespace cuop::executor
