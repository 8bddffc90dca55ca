#include "cuop/dist/comm/packed_exchange.h"

#include <optional>

#include "cuop/dist/comm/blocks.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {
namespace {

using Side = PackedExchange::Side;

Block& block_of(Side& side, const Patch& patch) {
  return side.blocks[static_cast<size_t>(patch.peer)];
}

/// A tensor a peer, each without gaps, all in one storage.
std::optional<Side> in_place(std::span<const Patch> patches, int ranks) {
  Side side;
  side.blocks.resize(static_cast<size_t>(ranks));
  for (const Patch& patch : patches) {
    const Tensor& tensor = patch.elements;
    Block& block = block_of(side, patch);
    if (!tensor.is_contiguous() || block.bytes > 0 ||
        tensor.storage() != patches[0].elements.storage()) {
      return std::nullopt;
    }
    auto* address = static_cast<std::byte*>(tensor.data());
    if (side.data == nullptr) side.data = address;
    if (address < side.data) return std::nullopt;  // blocks count upwards from the first
    block = {address - side.data, tensor.nbytes()};
  }
  return side;
}

/// A new buffer in which the tensors of one peer stand one after the other.
Side packed(std::span<const Patch> patches, int ranks) {
  Side side;
  side.blocks.resize(static_cast<size_t>(ranks));
  for (const Patch& patch : patches) block_of(side, patch).bytes += patch.elements.nbytes();
  side.blocks = packed_blocks(side.blocks);
  const int64_t bytes = total_bytes(side.blocks);
  const DType dtype = patches[0].elements.dtype();
  const Tensor buffer = empty({bytes / itemsize(dtype)}, dtype, patches[0].elements.device());
  std::vector<int64_t> filled(side.blocks.size());
  for (const Patch& patch : patches) {
    int64_t& used = filled[static_cast<size_t>(patch.peer)];
    Layout layout = contiguous_layout(patch.elements.shape());
    layout.offset = (block_of(side, patch).offset + used) / itemsize(dtype);
    used += patch.elements.nbytes();
    side.places.push_back(buffer.with_layout(layout));
  }
  side.data = static_cast<std::byte*>(buffer.data());
  return side;
}

Side side_of(std::span<const Patch> patches, int ranks) {
  std::optional<Side> side = in_place(patches, ranks);
  return side ? *side : packed(patches, ranks);
}

}  // namespace

PackedExchange::PackedExchange(std::span<const Patch> sends, std::span<const Patch> receives,
                               int ranks, Stream stream)
    : receives_(receives), stream_(stream) {
  const StreamScope scope(stream);
  send_ = side_of(sends, ranks);
  for (size_t i = 0; i < send_.places.size(); ++i) copy_into(send_.places[i], sends[i].elements);
  receive_ = side_of(receives, ranks);
}

void PackedExchange::deliver() const {
  const StreamScope scope(stream_);
  for (size_t i = 0; i < receive_.places.size(); ++i) {
    copy_into(receives_[i].elements, receive_.places[i]);
  }
}

}  // namespace cuop::dist
