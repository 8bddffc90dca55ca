// Planned moves whose elements travel in another form (plan/wire.h).
#include <algorithm>
#include <optional>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/narrow.h"
#include "cuop/dist/exec/sparse.h"
#include "cuop/dist/relay.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

using Patches = std::vector<Patch>;

/// Tensors of one call have one dtype: bytes.
Tensor bytes_of(const Tensor& tensor) { return seen_as(contiguous(tensor), DType::kUInt8); }

/// make(view) of each piece that is sent; of a box that goes to several ranks once.
template <class Packet, class Make>
std::vector<Packet> packets_of(const std::vector<Piece>& pieces, const Part& source,
                               const Make& make) {
  std::vector<Packet> packets;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto same = std::find_if(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(i),
                                   [&](const Piece& each) { return each.box == pieces[i].box; });
    const auto place = static_cast<size_t>(same - pieces.begin());
    packets.push_back(place < i ? packets[place] : make(view_of(source, pieces[i].box)));
  }
  return packets;
}

void exchange_narrow(Communicator& comm, const RankMoves& moves, const Part& source,
                     const Landing& landing, DType dtype, int axis) {
  Patches sends, receives;
  const auto add = [](Patches& patches, int peer, const Narrowed& packet) {
    patches.push_back({peer, bytes_of(packet.values)});
    patches.push_back({peer, bytes_of(packet.exponents)});
  };
  const auto packets = packets_of<Narrowed>(
      moves.sends, source, [&](const Tensor& x) { return narrowed(x, dtype, axis); });
  for (size_t i = 0; i < packets.size(); ++i) add(sends, moves.sends[i].peer, packets[i]);
  std::vector<Narrowed> arrived;
  for (const Piece& piece : moves.receives) {
    arrived.push_back(empty_narrowed(piece.box.shape(), dtype, axis, source.device));
    add(receives, piece.peer, arrived.back());
  }
  comm.exchange(sends, receives, current_stream(source.device));
  for (size_t i = 0; i < arrived.size(); ++i) {
    widen_into(landing(moves.receives[i]), arrived[i]);
  }
}

/// What each piece is written as, from those who send it to those who receive it.
std::vector<SparseForm> exchange_forms(Communicator& comm, const RankMoves& moves,
                                       const std::vector<Sparse>& packets) {
  Patches sends, receives;
  for (size_t i = 0; i < packets.size(); ++i) {
    const SparseForm& form = packets[i].form;
    sends.push_back({moves.sends[i].peer,
                     from_values<int64_t>({2}, {static_cast<int64_t>(form.kind), form.nonzeros})});
  }
  for (const Piece& piece : moves.receives) {
    receives.push_back({piece.peer, empty({2}, DType::kInt64)});
  }
  comm.exchange(sends, receives);
  std::vector<SparseForm> forms;
  for (size_t i = 0; i < receives.size(); ++i) {
    const int64_t* told = receives[i].elements.data<int64_t>();
    forms.push_back({static_cast<SparseForm::Kind>(told[0]), told[1]});
    const Piece& piece = moves.receives[i];
    if (forms.back().is_sound(piece.box.size())) continue;
    throw CommunicationError(cat("exchange: rank ", piece.peer, " describes ", piece.box.size(),
                                 " elements as form ", told[0], " with ", told[1], " nonzeros"),
                             comm.in_world(piece.peer));
  }
  return forms;
}

void exchange_sparse(Communicator& comm, const RankMoves& moves, const Part& source,
                     const Landing& landing, const Wire& wire) {
  const auto packets = packets_of<Sparse>(moves.sends, source, [&](const Tensor& x) {
    return without_zeros(x, wire.threshold, wire.is_by_cost);
  });
  const std::vector<SparseForm> forms = exchange_forms(comm, moves, packets);
  Patches sends, receives;
  const auto add = [](Patches& patches, int peer, const Sparse& packet) {
    if (packet.index.is_defined()) patches.push_back({peer, packet.index});
    patches.push_back({peer, bytes_of(packet.values)});
  };
  for (size_t i = 0; i < packets.size(); ++i) add(sends, moves.sends[i].peer, packets[i]);
  std::vector<Sparse> arrived;
  for (size_t i = 0; i < forms.size(); ++i) {
    const Piece& piece = moves.receives[i];
    const Tensor place = landing(piece);
    arrived.push_back(empty_sparse(
        forms[i],
        place.is_contiguous() ? place : empty(place.shape(), place.dtype(), place.device())));
    add(receives, piece.peer, arrived.back());
  }
  comm.exchange(sends, receives, current_stream(source.device));
  for (size_t i = 0; i < arrived.size(); ++i) {
    with_zeros_into(landing(moves.receives[i]), arrived[i]);
  }
}

}  // namespace

void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing, DType dtype, const Wire& wire, int axis) {
  const bool is_narrow = wire.form == Wire::Form::kNarrow;
  const bool is_plain =
      is_narrow ? wire.planned_dtype(dtype) == dtype : wire.form == Wire::Form::kPlain;
  if (is_plain || moves.is_local) return exchange(comm, moves, source, landing);
  for (const Piece& piece : moves.kept) copy_into(landing(piece), view_of(source, piece.box));
  if (is_narrow) {
    exchange_narrow(comm, moves, source, landing, wire.dtype, axis);
  } else {
    exchange_sparse(comm, moves, source, landing, wire);
  }
}

namespace {
/// Whether the place is a view of the source.
bool is_within(const Part& place, const Part& source) {
  return source.local.is_defined() && source.local.storage() == place.local.storage();
}
}  // namespace

void place_own(int rank, const Part& source, const std::vector<Box>& owners,
               const std::vector<Box>& boxes, const Part& place) {
  if (is_within(place, source)) return;
  for (const Piece& piece : plan_moves(rank, owners, needs_of(boxes)).kept) {
    copy_into(view_of(place, piece.box), view_of(source, piece.box));
  }
}

void fetch_into(Communicator& comm, const Part& source, const std::vector<Box>& owners,
                const std::vector<Box>& boxes, const Part& place, DType dtype,
                const Travel& travel) {
  const int rank = comm.rank();
  const Landing landing = [&place](const Piece& piece) { return view_of(place, piece.box); };
  const auto move = [&](const Part& from, const std::vector<Box>& of,
                        const std::vector<Box>& wanted) {
    RankMoves moves = plan_moves(rank, of, needs_of(wanted));
    if (travel.is_own_placed || is_within(place, from)) moves.kept.clear();
    exchange(comm, moves, from, landing, dtype, travel.wire, travel.axis);
  };
  const std::optional<Relay> relay = travel.is_relayed ? relay_of(owners, boxes) : std::nullopt;
  if (!relay) return move(source, owners, boxes);
  move(source, owners, relay->first);
  // Rounded again, numbers of a narrow wire stay what they are: of a part the largest is no larger.
  const Box& mine = relay->parts[static_cast<size_t>(rank)];
  const Part part{mine.empty() ? place.local : view_of(place, mine), mine, source.device};
  move(part, relay->parts, relay->shared);
}

Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const Travel& travel) {
  const Part place = place_for(boxes[static_cast<size_t>(comm.rank())], source, dtype);
  fetch_into(comm, source, owners, boxes, place, dtype, travel);
  return place.local;
}

}  // namespace cuop::dist
