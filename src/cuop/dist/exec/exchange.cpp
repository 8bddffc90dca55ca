#include "cuop/dist/exec/exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

Tensor view_of(const Part& part, const Box& box) {
  return part.local.with_layout(slice(part.local.layout(), box, part.box.low));
}

namespace {

/// Copies pieces that stay on this rank: on the host before ranks meet, on a GPU when what comes
/// over links has been ordered, so that the links begin first. There what is large goes on a stream
/// of its own that begins where the rank's was at construction.
class KeptPieces : NonCopyable {
 public:
  KeptPieces(const RankMoves& moves, const Part& source, const Landing& landing)
      : moves_(moves), source_(source), stream_(current_stream(source.device)) {
    constexpr int64_t kLeastAside = 1 << 20;  // less takes no longer than waits for each other
    int64_t elements = 0;
    for (const Piece& piece : moves.kept) {
      landings_.push_back(landing(piece));
      elements += piece.box.size();
    }
    const bool is_first = source.device.is_cpu() || moves.is_local;
    if (is_first) {
      copy_on(stream_, false);
      return;
    }
    if (elements == 0 || elements * itemsize(source.local.dtype()) < kLeastAside) return;
    aside_.emplace(source.device);
    backend::runtime(source.device).order(aside_->get(), stream_);
  }

  /// What follows on the rank's stream waits for what has been copied beside it.
  ~KeptPieces() {
    if (!aside_) return;
    try {
      backend::runtime(stream_.device).order(stream_, aside_->get());
    } catch (const Error&) {
      // The device is lost, which the next call that uses it says.
    }
  }

  /// Copies what has not been copied yet. Beside the rank's stream long rows go by the copy engine
  /// where what is sent does, which is where it is mapped: a kernel fills memory's bandwidth, and
  /// links take 5 per cent longer beside it (two H200s).
  void finish(const std::vector<Patch>& sends) {
    if (!aside_) return copy_on(stream_, false);
    copy_on(aside_->get(), are_mapped(sends));
  }

 private:
  void copy_on(Stream stream, bool by_engine) {
    const StreamScope scope(stream);
    for (size_t i = 0; i < landings_.size(); ++i) {
      const Tensor kept = view_of(source_, moves_.kept[i].box);
      if (by_engine) {
        kernels::copy_beside_work_cuda(landings_[i], kept);
      } else {
        copy_into(landings_[i], kept);
      }
    }
    landings_.clear();
  }

  const RankMoves& moves_;
  const Part& source_;
  Stream stream_;
  std::vector<Tensor> landings_;  ///< of what has not been copied yet
  std::optional<backend::OwnedStream> aside_;
};

}  // namespace

void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing) {
  KeptPieces kept(moves, source, landing);
  if (moves.is_local) return;

  std::vector<Patch> sends, receives;
  for (const Piece& piece : moves.sends) {
    sends.push_back({piece.peer, view_of(source, piece.box)});
  }
  for (const Piece& piece : moves.receives) receives.push_back({piece.peer, landing(piece)});
  comm.exchange(sends, receives, current_stream(source.device));
  kept.finish(sends);
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

Landing Fetch::landing() const {
  return [this](const Piece& piece) { return view_of(result, piece.box); };
}

Part place_for(const Box& wanted, const Part& source, DType dtype, const AxisOrder& order) {
  Part place{{}, wanted, source.device};
  if (!wanted.empty() && source.box.contains(wanted)) {
    place.local = view_of(source, wanted);
  } else if (!wanted.is_void) {
    place.local = empty_in(order, wanted.shape(), dtype, source.device);
  }
  return place;
}

Fetch prepare_fetch(int rank, const Part& source, const std::vector<Box>& owners,
                    const std::vector<Box>& boxes, DType dtype, const AxisOrder& order) {
  const Box& wanted = boxes[static_cast<size_t>(rank)];
  Fetch fetch{plan_moves(rank, owners, needs_of(boxes)), place_for(wanted, source, dtype, order)};
  const bool is_there = !wanted.empty() && source.box.contains(wanted);
  if (is_there) fetch.moves.kept.clear();
  return fetch;
}

Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const AxisOrder& order) {
  const Fetch fetch = prepare_fetch(comm.rank(), source, owners, boxes, dtype, order);
  exchange(comm, fetch.moves, source, fetch.landing());
  return fetch.result.local;
}

namespace {

/// x under another sharding, of which this rank has `local`.
DistTensor relaid(const DistTensor& x, const Sharding& sharding, Tensor local) {
  return DistTensor(x.comm_ptr(), sharding, x.shape(), x.dtype(), std::move(local), x.device());
}

}  // namespace

Tensor in_own_memory(const Tensor& result, const std::vector<Tensor>& inputs) {
  const bool is_shared = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
    return result.is_defined() && input.is_defined() && input.storage() == result.storage();
  });
  return is_shared ? clone(result) : result;
}

Part part_of(const DistTensor& x) { return {x.local(), x.box(), x.device()}; }

DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const AxisOrder& order) {
  if (x.sharding() == sharding) return x;
  return relaid(x, sharding,
                fetch(x.comm(), part_of(x), x.sharding().owner_boxes(x.shape()),
                      sharding.owner_boxes(x.shape()), x.dtype(), order));
}

DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const Wire& wire, int axis) {
  if (x.sharding() == sharding) return x;
  return relaid(x, sharding,
                fetch(x.comm(), part_of(x), x.sharding().owner_boxes(x.shape()),
                      sharding.owner_boxes(x.shape()), x.dtype(), Travel{wire, axis}));
}

}  // namespace cuop::dist
