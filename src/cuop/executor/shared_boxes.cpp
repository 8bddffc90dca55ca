#include "cuop/executor/shared_boxes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/interrupt.h"
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
  Entries withdrawn;  // gives its memory back when the lock is let go of
  const std::lock_guard lock(boxes_.mutex_);
  withdrawn.splice(withdrawn.end(), boxes_.entries_, entry_);
  boxes_.changed_.notify_all();
}

std::shared_ptr<SharedBoxes::Offer> SharedBoxes::read(size_t input, const Part& part, Reader reader,
                                                      const Bring& bring) {
  const std::vector<Box> pieces = pieces_of(part.box, part.local.nbytes(), reader.count);
  const auto offer = std::make_shared<Offer>(
      *this, Entry{input, part, current_stream(part.device), std::vector<Piece>(pieces.size())});
  Entry& mine = *offer->entry_;
  const auto bring_piece = [&](size_t i) {
    bring(pieces[i], view_of(part, pieces[i]));
    note_there(mine, i);
  };
  const size_t count = pieces.size();
  const size_t first =
      count * static_cast<size_t>(reader.index) / static_cast<size_t>(reader.count);
  std::vector<size_t> elsewhere;
  for (size_t k = 0; k < count; ++k) {
    const size_t i = (first + k) % count;
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

bool SharedBoxes::claim(Entry& mine, size_t piece) {
  const std::lock_guard lock(mutex_);
  if (find_other(mine, piece) != entries_.end()) return false;
  mine.pieces[piece].state = State::kComing;
  return true;
}

void SharedBoxes::note_there(Entry& mine, size_t piece) {
  auto there = backend::runtime(mine.part.device).create_event(false);
  there->record(mine.stream);
  const std::lock_guard lock(mutex_);
  mine.pieces[piece] = {State::kThere, std::move(there)};
  changed_.notify_all();
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
  // The offer stays as long as the lock is held; its memory is used again by work that its stream
  // gets later, which waits for the copy.
  const Tensor to = view_of(mine.part, box);
  other->pieces[piece].there->wait(mine.stream);
  pull(to, view_of(other->part, box));
  backend::runtime(other->part.device).order(other->stream, mine.stream);
  lock.unlock();
  mine.taken += to.nbytes();
  note_there(mine, piece);
  return true;
}

}  // namespace cuop::executor
