#include "cuop/dist/exec/exchange.h"

#include <optional>

#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

/// One side of the exchange: the buffer, each peer's block in it, and the pieces packed in it
/// (none when the pieces lie in the caller's tensors already).
struct Side {
  std::byte* data = nullptr;
  std::vector<Block> blocks;
  Tensor packed;
};

/// A piece a peer, each without gaps, all in one storage: they can travel from or to where they
/// are.
std::optional<Side> in_place(const std::vector<Piece>& pieces, const std::vector<Tensor>& views,
                             int ranks) {
  Side side;
  side.blocks.resize(static_cast<size_t>(ranks));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Tensor& view = views[i];
    Block& block = side.blocks[static_cast<size_t>(pieces[i].peer)];
    if (!view.is_contiguous() || block.bytes > 0 || view.storage() != views[0].storage()) {
      return std::nullopt;
    }
    auto* address = static_cast<std::byte*>(view.data());
    if (side.data == nullptr) side.data = address;
    if (address < side.data) return std::nullopt;  // blocks count upwards from the first
    block = {address - side.data, view.nbytes()};
  }
  return side;
}

Side packed_side(const std::vector<Piece>& pieces, int64_t elements, DType dtype, Device device,
                 int ranks) {
  Side side;
  side.packed = empty({elements}, dtype, device);
  side.data = static_cast<std::byte*>(side.packed.data());
  side.blocks.resize(static_cast<size_t>(ranks));
  for (const Piece& piece : pieces) {
    Block& block = side.blocks[static_cast<size_t>(piece.peer)];
    if (block.bytes == 0) block.offset = piece.offset * itemsize(dtype);
    block.bytes += piece.box.size() * itemsize(dtype);
  }
  return side;
}

Tensor packed_piece(const Side& side, const Piece& piece) {
  Layout layout = contiguous_layout(piece.box.shape());
  layout.offset = piece.offset;
  return side.packed.with_layout(layout);
}

}  // namespace

Tensor view_of(const Part& part, const Box& box) {
  Layout layout = part.local.layout();
  for (int axis = 0; axis < box.ndim(); ++axis) {
    const Interval wanted = box.interval(axis);
    layout = slice(layout, axis, wanted.low - part.box.low[axis], wanted.length(), 1);
  }
  return part.local.with_layout(layout);
}

void exchange(Communicator& comm, const RankMoves& moves, const Part& source, DType dtype,
              const Landing& landing) {
  for (const Piece& piece : moves.kept) copy_into(landing(piece), view_of(source, piece.box));
  if (moves.is_local) return;

  trace::Span span("exchange", "comm");
  span.add_bytes(moves.send_elements * itemsize(dtype));
  const Device device = source.device;
  std::vector<Tensor> outgoing;
  for (const Piece& piece : moves.sends) outgoing.push_back(view_of(source, piece.box));
  std::optional<Side> send = in_place(moves.sends, outgoing, comm.size());
  if (!send) {
    send = packed_side(moves.sends, moves.send_elements, dtype, device, comm.size());
    for (size_t i = 0; i < outgoing.size(); ++i) {
      copy_into(packed_piece(*send, moves.sends[i]), outgoing[i]);
    }
  }
  std::vector<Tensor> incoming;
  for (const Piece& piece : moves.receives) incoming.push_back(landing(piece));
  std::optional<Side> receive = in_place(moves.receives, incoming, comm.size());
  if (!receive) {
    receive = packed_side(moves.receives, moves.receive_elements, dtype, device, comm.size());
  }
  comm.all_to_all(send->data, send->blocks, receive->data, receive->blocks, current_stream(device));
  if (receive->packed.is_defined()) {
    for (size_t i = 0; i < incoming.size(); ++i) {
      copy_into(incoming[i], packed_piece(*receive, moves.receives[i]));
    }
  }
}

Tensor empty_in(const AxisOrder& order, const Shape& shape, DType dtype, Device device) {
  if (order.empty()) return empty(shape, dtype, device);
  Shape in_memory;
  std::vector<int64_t> place(order.size());  // of each axis in memory
  for (size_t i = 0; i < order.size(); ++i) {
    in_memory.push_back(shape[static_cast<int>(order[i])]);
    place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return permute(empty(in_memory, dtype, device), place);
}

Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const AxisOrder& order) {
  const Box& wanted = boxes[static_cast<size_t>(comm.rank())];
  const std::vector<Need> needs = needs_of(boxes);
  RankMoves moves = plan_moves(comm.rank(), owners, needs);
  Part result{{}, wanted, source.device};
  if (!wanted.empty() && source.box.contains(wanted)) {
    result.local = view_of(source, wanted);
    moves.kept.clear();
  } else if (!wanted.is_void) {
    result.local = empty_in(order, wanted.shape(), dtype, source.device);
  }
  exchange(comm, moves, source, dtype,
           [&](const Piece& piece) { return view_of(result, piece.box); });
  return result.local;
}

}  // namespace cuop::dist
