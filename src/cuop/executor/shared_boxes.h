// Boxes of a call's arrays that several GPUs of one process read: each brings some pieces of a box
// from the host and takes the others from a GPU that has them, over the link between the two, so
// that every byte crosses the link of one GPU alone.
//
// Worked example: two GPUs read all of B. The first half of its pieces is the first GPU's turn and
// the second half the second one's; each then takes from the other what it has not. A GPU that is
// late finds all pieces at the other one: who has got its own begins with those whose turn it is
// not, one after another. A piece is waited for only while another GPU brings it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/backend/event.h"
#include "cuop/core/noncopyable.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

/// Any threads may call.
class SharedBoxes : NonCopyable {
  enum class State : uint8_t { kAbsent, kComing, kThere };
  struct Piece {
    State state = State::kAbsent;
    std::shared_ptr<const backend::Event> there = {};  ///< of the stream that fills it
  };
  struct Entry {
    size_t input;
    Part part;
    Stream stream;
    std::vector<Piece> pieces;
    std::vector<std::shared_ptr<const backend::Event>> copied = {};  ///< by other GPUs, their marks
    int64_t taken = 0;
  };
  using Entries = std::list<Entry>;

 public:
  /// Offers a box to the other GPUs for the time of its life, for which it keeps the tensor. Work
  /// that the stream gets after that waits for their copies, as the memory is used again.
  class Offer : NonCopyable {
   public:
    Offer(SharedBoxes& boxes, Entry entry);
    ~Offer();
    /// Of the box, bytes that came from other GPUs.
    int64_t taken_bytes() const { return entry_->taken; }

   private:
    friend class SharedBoxes;
    SharedBoxes& boxes_;
    Entries::iterator entry_;
  };
  /// Copies what lies in a box on the host to `place`, as work of the device's current stream.
  using Bring = std::function<void(const Box& box, const Tensor& place)>;

  /// Fills `part`, on a GPU, with its box of an input as work of the GPU's current stream, and
  /// offers it to the others. What `bring` throws, and Interrupted.
  std::shared_ptr<Offer> read(size_t input, const Part& part, Reader reader, const Bring& bring);

 private:
  /// Another GPU's offer of the same box that has the piece, else one that is about to; the end
  /// where there is none. Under the lock.
  Entries::iterator find_other(const Entry& mine, size_t piece);
  bool is_elsewhere(const Entry& mine, size_t piece);
  /// Whether this GPU is the one that brings the piece.
  bool claim(Entry& mine, size_t piece);
  /// Marks a piece of which all work was given to the stream: the mark. Under the lock.
  std::shared_ptr<const backend::Event> note_there(Entry& mine, size_t piece);
  /// Takes the piece from another GPU; false when none has it.
  bool take(Entry& mine, size_t piece, const Box& box);

  std::mutex mutex_;
  std::condition_variable changed_;
  Entries entries_;
};

}  // namespace cuop::executor
