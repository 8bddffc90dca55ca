#include "cuop/executor/thread_boxes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/log.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::executor {

/// Work that the stream gets when it is gone waits for the others' copies, as the memory is used
/// again.
class ThreadBoxes::Offer final : public SharedBox {
 public:
  Offer(ThreadBoxes& boxes, Entry entry) : SharedBox(entry.part), boxes_(boxes) {
    const std::lock_guard lock(boxes_.mutex_);
    entry_ = boxes_.entries_.insert(boxes_.entries_.end(), std::move(entry));
  }
  ~Offer() override;

 protected:
  bool is_elsewhere(size_t piece) override {
    const std::lock_guard lock(boxes_.mutex_);
    return boxes_.find_other(*entry_, piece) != boxes_.entries_.end();
  }
  bool claim(size_t piece) override;
  void note_brought(size_t piece) override {
    const std::lock_guard lock(boxes_.mutex_);
    brought_ = note_there(piece);
  }
  void await_brought() override { brought_->synchronize(); }
  bool take(size_t piece, const Box& box) override;

 private:
  /// Marks a piece of which all work was given to the stream: the mark. Under the lock.
  std::shared_ptr<const backend::Event> note_there(size_t piece);

  ThreadBoxes& boxes_;
  Entries::iterator entry_;
  std::shared_ptr<const backend::Event> brought_;  ///< the last of what this GPU has brought
};

ThreadBoxes::Offer::~Offer() {
  Entries withdrawn;
  {
    const std::lock_guard lock(boxes_.mutex_);
    withdrawn.splice(withdrawn.end(), boxes_.entries_, entry_);
    boxes_.changed_.notify_all();
  }
  for (const auto& copied : entry_->copied) {
    try {
      copied->wait(entry_->stream);
    } catch (const Error& error) {  // a GPU is lost, and its copies with it: its next call says so
      log(LogLevel::kInfo, "memory that another GPU copied is given back: ", error.what());
    }
  }
}

bool ThreadBoxes::Offer::claim(size_t piece) {
  const std::lock_guard lock(boxes_.mutex_);
  if (boxes_.find_other(*entry_, piece) != boxes_.entries_.end()) return false;
  entry_->pieces[piece].state = State::kComing;
  return true;
}

std::shared_ptr<const backend::Event> ThreadBoxes::Offer::note_there(size_t piece) {
  std::shared_ptr<backend::Event> there = backend::runtime(part_.device).create_event(false);
  there->record(entry_->stream);
  entry_->pieces[piece] = {State::kThere, there};
  boxes_.changed_.notify_all();
  return there;
}

bool ThreadBoxes::Offer::take(size_t piece, const Box& box) {
  const trace::Span span("tile input of another GPU", "executor");
  std::unique_lock lock(boxes_.mutex_);
  Entries::iterator other;
  // The lock is let go of between two looks, and offers come and go.
  wait_interruptibly(boxes_.changed_, lock, std::chrono::steady_clock::time_point::max(), [&] {
    other = boxes_.find_other(*entry_, piece);
    return other == boxes_.entries_.end() || other->pieces[piece].state == State::kThere;
  });
  if (other == boxes_.entries_.end()) return false;
  // The offer stays as long as the lock is held, and its memory until the copy has ended.
  const Tensor to = view_of(part_, box);
  other->pieces[piece].there->wait(entry_->stream);
  pull(to, view_of(other->part, box));
  other->copied.push_back(note_there(piece));
  taken_ += to.nbytes();
  return true;
}

std::shared_ptr<SharedBox> ThreadBoxes::open(size_t input, DType dtype, const Box& box,
                                             Device device, size_t pieces) {
  Part part{empty(box.shape(), dtype, device), box, device};
  return std::make_shared<Offer>(
      *this, Entry{input, std::move(part), current_stream(device), std::vector<Piece>(pieces)});
}

ThreadBoxes::Entries::iterator ThreadBoxes::find_other(const Entry& mine, size_t piece) {
  const auto find = [&](State state) {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
      return &each != &mine && each.input == mine.input && each.part.box == mine.part.box &&
             each.pieces.size() == mine.pieces.size() && each.pieces[piece].state == state;
    });
  };
  const auto there = find(State::kThere);
  return there != entries_.end() ? there : find(State::kComing);
}

}  // namespace cuop::executor
