#include "cuop/dist/comm/fabric_exports.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/error.h"

namespace cuop::dist::fabric {

namespace {

using backend::cuda::MappedPiece;
using backend::cuda::MappedStretch;

backend::cuda::MappedRanges& ranges_of(Device device) {
  return backend::cuda::cuda_runtime(device).mapped();
}

/// All that the tensor's elements reach, and how far behind its beginning element (0, 0, ...) lies.
struct Reach {
  const char* first = nullptr;
  int64_t bytes = 0;
  int64_t to_origin = 0;
};

Reach reach_of(const Tensor& tensor) {
  const int64_t item = itemsize(tensor.dtype());
  Layout layout = tensor.layout();
  layout.offset = 0;
  const Extent touched = extent(layout);
  return {static_cast<const char*>(tensor.data()) + touched.begin * item,
          (touched.end - touched.begin) * item, -touched.begin * item};
}

std::optional<MappedStretch> find(const Tensor& tensor) {
  const Reach reach = reach_of(tensor);
  return ranges_of(tensor.device()).find(reach.first, reach.bytes);
}

}  // namespace

Exports::Exports(Device device, const ChannelPlace& place) : device_(device), place_(place) {}

bool Exports::can_describe(const Tensor& tensor) {
  return tensor.size() == 0 || find(tensor).has_value();
}

TensorNote Exports::describe(const Tensor& tensor) {
  TensorNote note = note_of(tensor);
  if (tensor.size() == 0) return note;
  const std::optional<MappedStretch> stretch = find(tensor);
  if (!stretch) throw ExecutionError("memory: the tensor does not lie in memory to be exported");
  note.range = stretch->range;
  note.offset = stretch->offset + reach_of(tensor).to_origin;
  for (const MappedPiece& piece : stretch->pieces) {
    if (announced_.contains(piece.number)) continue;
    retire();  // first what may have stood in the same place
    queue_.push_back({PieceNote::Kind::kMapped, piece.number, stretch->range, stretch->range_bytes,
                      piece.offset, piece.bytes});
    announced_.insert(piece.number);
  }
  return note;
}

void Exports::retire() {
  const auto& ranges = ranges_of(device_);
  const uint64_t removals = ranges.removals();
  if (removals == removals_) return;
  removals_ = removals;
  std::erase_if(announced_, [&](uint64_t number) {
    if (ranges.is_live(number)) return false;
    queue_.push_back({.kind = PieceNote::Kind::kGone, .number = number});
    return true;
  });
}

void Exports::push(DescriptorChannel& channel) {
  constexpr size_t kMost =
      std::min(DescriptorChannel::kMostFiles, DescriptorChannel::kMostBytes / sizeof(PieceNote));
  for (; !is_pushed(); batch_.clear(), files_.clear()) {
    for (; batch_.size() < kMost && !queue_.empty(); queue_.pop_front()) {
      const PieceNote& note = queue_.front();
      if (note.kind == PieceNote::Kind::kMapped) {
        files_.push_back(ranges_of(device_).export_piece({note.number, note.offset, note.bytes}));
      }
      batch_.push_back(note);
    }
    if (!channel.send(place_, std::as_bytes(std::span(batch_)), files_)) return;
    sent_ += static_cast<int64_t>(batch_.size());
  }
}

}  // namespace cuop::dist::fabric
