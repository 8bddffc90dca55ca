#include "cuop/dist/comm/fabric_imports.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist::fabric {

namespace {

using backend::cuda::ImportedRange;

constexpr size_t kMostRanges = 256;
/// A pool takes addresses for twice its device's memory at once, and some more for its granules;
/// twice as many are let in.
constexpr int64_t kRangeFactor = 4, kRangeSpare = int64_t{1} << 30;

/// No strides of 64 bits overflow it, for a shape that a tensor here has.
__extension__ using Wide = __int128;

/// First and one-past-last byte that the elements reach, counted from element (0, 0, ...).
struct ReachedBytes {
  Wide begin = 0, end = 0;
};

/// Nothing for no elements.
std::optional<ReachedBytes> reach_of(const TensorNote& note, int64_t item) {
  ReachedBytes reach{0, item};
  for (int i = 0; i < note.ndim; ++i) {
    const auto axis = static_cast<size_t>(i);
    if (note.shape[axis] == 0) return std::nullopt;
    const Wide far = Wide{(note.shape[axis] - 1) * item} * note.strides[axis];
    (far < 0 ? reach.begin : reach.end) += far;
  }
  return reach;
}

}  // namespace

Imports::Imports(Device device, int64_t peer_bytes) : device_(device), peer_bytes_(peer_bytes) {}

void Imports::take(const DescriptorChannel::Message& message) {
  const size_t count = message.bytes.size() / sizeof(PieceNote);
  std::vector<PieceNote> notes(count);
  std::memcpy(notes.data(), message.bytes.data(), count * sizeof(PieceNote));
  const auto is_mapped = [](const PieceNote& note) {
    return note.kind == PieceNote::Kind::kMapped;
  };
  const auto files = static_cast<size_t>(std::ranges::count_if(notes, is_mapped));
  if (message.bytes.size() % sizeof(PieceNote) != 0 || files != message.files.size()) {
    throw ExecutionError(cat("mapped memory: a message of ", message.bytes.size(), " bytes names ",
                             files, " pieces and brings ", message.files.size(), " files"));
  }
  auto file = message.files.begin();
  for (const PieceNote& note : notes) {
    if (is_mapped(note)) {
      map(note, *file++);
    } else {
      unmap(note.number);
    }
    ++count_;
  }
}

void Imports::map(const PieceNote& note, const Descriptor& file) {
  if (pieces_.contains(note.number)) {
    throw ExecutionError(cat("mapped memory: piece ", note.number, " comes twice"));
  }
  if (note.bytes <= 0 || note.bytes > peer_bytes_ - mapped_bytes_) {
    throw ExecutionError(cat("mapped memory: another ", note.bytes, " bytes beside ", mapped_bytes_,
                             " are more than the ", peer_bytes_, " bytes of the GPU they are of"));
  }
  auto range = ranges_.find(note.range);
  if (range == ranges_.end()) {
    const int64_t most = kRangeFactor * peer_bytes_ + kRangeSpare;
    if (ranges_.size() == kMostRanges || note.range_bytes > most) {
      throw ExecutionError(cat("mapped memory: a range of ", note.range_bytes, " bytes beside ",
                               ranges_.size(), " others; ", most, " bytes and ", kMostRanges,
                               " ranges are allowed"));
    }
    range = ranges_.emplace(note.range, std::make_shared<Range>(device_, note.range_bytes)).first;
  }
  if (range->second->bytes() != note.range_bytes) {
    throw ExecutionError(cat("mapped memory: range ", note.range, " had ", range->second->bytes(),
                             " bytes and has ", note.range_bytes));
  }
  range->second->map({note.number, note.offset, note.bytes}, file);
  pieces_[note.number] = note;
  mapped_bytes_ += note.bytes;
}

void Imports::unmap(uint64_t number) {
  const auto piece = pieces_.find(number);
  if (piece == pieces_.end()) {
    throw ExecutionError(cat("mapped memory: piece ", number, " is said to be gone and is none"));
  }
  const auto range = ranges_.find(piece->second.range);
  range->second->unmap(piece->second.offset);
  if (range->second->is_empty()) ranges_.erase(range);
  mapped_bytes_ -= piece->second.bytes;
  pieces_.erase(piece);
}

Tensor Imports::view(const TensorNote& note, DType dtype, const Shape& shape) const {
  check_fits(note, dtype, shape);
  const int64_t item = itemsize(dtype);
  const std::optional<ReachedBytes> reach = reach_of(note, item);
  if (!reach) return empty(shape, dtype, device_);
  const auto range = ranges_.find(note.range);
  const Wide begin = note.offset + reach->begin, end = note.offset + reach->end;
  const bool is_there =
      range != ranges_.end() && note.offset % item == 0 && begin >= 0 &&
      end <= range->second->bytes() &&
      range->second->covers(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
  if (!is_there) {
    throw CommunicationError(cat("was given a place for ", text_of(note), " at ", note.offset,
                                 " of range ", note.range,
                                 " that does not lie in the memory it was told of"));
  }
  Layout layout{shape, {}, 0};
  std::vector<int64_t> strides(note.strides.begin(), note.strides.begin() + note.ndim);
  layout.strides = Strides(strides);
  return from_memory(range->second->at(note.offset), layout, dtype, device_, range->second, true);
}

}  // namespace cuop::dist::fabric
