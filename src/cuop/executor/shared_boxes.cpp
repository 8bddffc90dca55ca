#include "cuop/executor/shared_boxes.h"

#include <algorithm>
#include <vector>

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
  const int64_t count = std::min({wanted, kMostPieces, box.interval(axis).length()});
  std::vector<Box> pieces(static_cast<size_t>(count), box);
  for (int64_t i = 0; i < count; ++i) {
    pieces[static_cast<size_t>(i)].set_interval(axis, split_evenly(box.interval(axis), count, i));
  }
  return pieces;
}

}  // namespace

std::shared_ptr<SharedBox> SharedBoxes::read(size_t input, DType dtype, const Box& box,
                                             Device device, Reader reader, const Bring& bring) {
  const std::vector<Box> pieces = pieces_of(box, box.size() * itemsize(dtype), reader.count);
  const std::shared_ptr<SharedBox> mine = open(input, dtype, box, device, pieces.size());
  bool has_brought = false;
  const auto bring_piece = [&](size_t i) {
    bring(pieces[i], view_of(mine->part(), pieces[i]));
    mine->note_brought(i);
    has_brought = true;
  };
  const auto first_of = [count = pieces.size(), readers = static_cast<size_t>(reader.count)](
                            int index) { return count * static_cast<size_t>(index) / readers; };
  const size_t first = first_of(reader.index), own = first_of(reader.index + 1) - first;
  std::vector<size_t> elsewhere;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const size_t i = (first + k) % pieces.size();
    // Copies of page-locked memory are ordered at once: the other GPUs would find nothing to bring.
    if (k >= own && has_brought && !mine->is_elsewhere(i)) mine->await_brought();
    if (mine->claim(i)) {
      bring_piece(i);
    } else {
      elsewhere.push_back(i);
    }
  }
  for (const size_t i : elsewhere) {
    while (!mine->take(i, pieces[i])) {
      if (mine->claim(i)) {
        bring_piece(i);
        break;
      }
    }
  }
  mine->finish();
  return mine;
}

}  // namespace cuop::executor
