// Boxes of a call's arrays that several GPUs read: each brings some pieces of a box from the host
// and takes the others from a GPU that has them, over the link between the two, so that every byte
// crosses the link of one GPU alone.
//
// Worked example: two GPUs read all of B. The first half of its pieces is the first GPU's turn and
// the second half the second one's; each then takes from the other what it has not. A GPU that is
// late finds all pieces at the other one: who has got its own begins with those whose turn it is
// not, one after another. A piece is waited for only while another GPU brings it.
//
// How the GPUs find and copy each other's pieces depends on whose they are: of threads of this
// process (thread_boxes.h), or of processes of this host (process_boxes.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "cuop/core/noncopyable.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

/// Of a box. A few for each of its readers, of which there are not more than GPUs of a host.
inline constexpr int64_t kMostPieces = 256;

/// A box of an input as one GPU reads it, on offer to the others for as long as it lives. Its
/// pieces have numbers.
class SharedBox : NonCopyable {
 public:
  virtual ~SharedBox() = default;
  const Part& part() const { return part_; }
  /// Of the box, bytes that came from other GPUs.
  int64_t taken_bytes() const { return taken_; }
  /// The current stream's work so far uses the box, whose memory is used again behind it.
  virtual void note_used() {}

 protected:
  friend class SharedBoxes;
  explicit SharedBox(Part part) : part_(std::move(part)) {}

  /// Whether another GPU has the piece or is about to.
  virtual bool is_elsewhere(size_t piece) = 0;
  /// Whether this GPU is the one that brings the piece.
  virtual bool claim(size_t piece) = 0;
  /// All work that brings the piece was given to the current stream.
  virtual void note_brought(size_t piece) = 0;
  /// Returns when all that this GPU has brought is there.
  virtual void await_brought() = 0;
  /// Copies the piece, `box`, from another GPU that has it or is about to; false when none has it.
  virtual bool take(size_t piece, const Box& box) = 0;
  /// Nothing more is brought or taken.
  virtual void finish() {}

  Part part_;
  int64_t taken_ = 0;
};

class SharedBoxes : NonCopyable {
 public:
  virtual ~SharedBoxes() = default;
  /// Copies what lies in a box on the host to `place`, as work of the device's current stream.
  using Bring = std::function<void(const Box& box, const Tensor& place)>;

  /// The box of an input on a GPU, as work of its current stream; the others may take of it from
  /// now on. MemoryError, what `bring` throws, and Interrupted.
  std::shared_ptr<SharedBox> read(size_t input, DType dtype, const Box& box, Device device,
                                  Reader reader, const Bring& bring);
  /// Lets go of memory that is kept for boxes to come, of which there are none.
  virtual void release_memory() {}

 protected:
  virtual std::shared_ptr<SharedBox> open(size_t input, DType dtype, const Box& box, Device device,
                                          size_t pieces) = 0;
};

}  // namespace cuop::executor
