#include "cuop/executor/shared_boxes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/log.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::executor {
namespace {

/// Pieces that a box falls into, the same for all its readers: some for each, as none of them is
/// sure to begin at once, of so many bytes at least that copies from the host reach their speed.
std::vector<Box> pieces_of(const Box& box, int64_t bytes, int readers) {
  constexpr int64_t kPieceBytes = int64_t{32} << 20, kMostOfAReader = 4;
  int axis = 0;  // the first that has a length: pieces are rows of memory
  while (axis + 1 < box.ndim() && box.interval(axis).length() < 2) ++axis;
  if (box.ndim() == 0) return {box};
  const int64_t wanted =
      std::clamp<int64_t>(bytes / kPieceBytes, readers, kMostOfAReader * readers);
  const int64_t count = std::min(wanted, box.interval(axis).length());
  std::vector<Box> pieces(static_cast<size_t>(count), box);
  for (int64_t i = 0; i < count; ++i) {
    pieces[static_cast<size_t>(i)].set_interval(axis, split_evenly(box.interval(axis), count, i));
  }
  return pieces;
}

}  // namespace

SharedBoxes::Offer::Offer(SharedBoxes& boxes, Entry entry) : boxes_(boxes) {
  const std::lock_guard lock(boxes_.mutex_);
  entry_ = boxes_.entries_.insert(boxes_.entries_.end(), std::move(entry));
}

SharedBoxes::Offer::~Offer() {
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

std::shared_ptr<SharedBoxes::Offer> SharedBoxes::read(size_t input, const Part& part, Reader reader,
                                                      const Bring& bring) {
  const std::vector<Box> pieces = pieces_of(part.box, part.local.nbytes(), reader.count);
  const auto offer = std::make_shared<Offer>(
      *this, Entry{input, part, current_stream(part.device), std::vector<Piece>(pieces.size())});
  Entry& mine = *offer->entry_;
  std::shared_ptr<const backend::Event> last;  // of what this GPU brings
  const auto bring_piece = [&](size_t i) {
    bring(pieces[i], view_of(part, pieces[i]));
    const std::lock_guard lock(mutex_);
    last = note_there(mine, i);
  };
  const auto first_of = [count = pieces.size(), readers = static_cast<size_t>(reader.count)](
                            int index) { return count * static_cast<size_t>(index) / readers; };
  const size_t first = first_of(reader.index), own = first_of(reader.index + 1) - first;
  std::vector<size_t> elsewhere;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const size_t i = (first + k) % pieces.size();
    // Copies of page-locked memory are ordered at once: the other GPUs would find nothing to bring.
    if (k >= own && last != nullptr && !is_elsewhere(mine, i)) last->synchronize();
    if (claim(mine, i)) {
      bring_piece(i);
    } else {
      elsewhere.push_back(i);
    }
  }
  for (const size_t i : elsewhere) {
    while (!take(mine, i, pieces[i])) {
      if (claim(mine, i)) {
        bring_piece(i);
        break;
      }
    }
  }
  return offer;
}

SharedBoxes::Entries::iterator SharedBoxes::find_other(const Entry& mine, size_t piece) {
  const auto find = [&](State state) {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
      return &each != &mine && each.input == mine.input && each.part.box == mine.part.box &&
             each.pieces.size() == mine.pieces.size() && each.pieces[piece].state == state;
    });
  };
  const auto there = find(State::kThere);
  return there != entries_.end() ? there : find(State::kComing);
}

bool SharedBoxes::is_elsewhere(const Entry& mine, size_t piece) {
  const std::lock_guard lock(mutex_);
  return find_other(mine, piece) != entries_.end();
}

bool SharedBoxes::claim(Entry& mine, size_t piece) {
  const std::lock_guard lock(mutex_);
  if (find_other(mine, piece) != entries_.end()) return false;
  mine.pieces[piece].state = State::kComing;
  return true;
}

std::shared_ptr<const backend::Event> SharedBoxes::note_there(Entry& mine, size_t piece) {
  std::shared_ptr<backend::Event> there = backend::runtime(mine.part.device).create_event(false);
  there->record(mine.stream);
  mine.pieces[piece] = {State::kThere, there};
  changed_.notify_all();
  return there;
}

bool SharedBoxes::take(Entry& mine, size_t piece, const Box& box) {
  const trace::Span span("tile input of another GPU", "executor");
  std::unique_lock lock(mutex_);
  Entries::iterator other;
  // The lock is let go of between two looks, and offers come and go.
  wait_interruptibly(changed_, lock, std::chrono::steady_clock::time_point::max(), [&] {
    other = find_other(mine, piece);
    return other == entries_.end() || other->pieces[piece].state == State::kThere;
  });
  if (other == entries_.end()) return false;
  // The offer stays as long as the lock is held, and its memory until the copy has ended.
  const Tensor to = view_of(mine.part, box);
  other->pieces[piece].there->wait(mine.stream);
  pull(to, view_of(other->part, box));
  other->copied.push_back(note_there(mine, piece));
  mine.taken += to.nbytes();
  return true;
}

}  // namespace cuop::executor
