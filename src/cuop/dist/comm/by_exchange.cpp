#include "cuop/dist/comm/by_exchange.h"

#include <algorithm>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/dist/comm/reduction.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

namespace {

using Kind = Collective::Kind;
using Patches = std::vector<Patch>;

/// Up to this many bytes that one rank reads in all, one exchange of whole vectors takes less time
/// than two of a rank's share: tens of microseconds on the way between GPUs.
constexpr int64_t kOneStepBytes = int64_t{8} << 20;
/// Bytes of one rank's share of a reduction that are fetched from each rank at a time.
constexpr int64_t kExchangedBytes = int64_t{64} << 20;

/// One call of one rank.
class ByExchange {
 public:
  ByExchange(const Collective& call, int rank, int size, const ExchangeTensors& exchange)
      : call_(call), rank_(rank), size_(size), exchange_(exchange) {}

  void broadcast() const;
  void scatter() const { scatter(call_.send, call_.blocks, call_.recv); }
  void gather() const { gather(call_.send, call_.blocks, call_.recv); }
  void all_gather() const { all_gather(call_.send, call_.blocks, call_.recv); }
  void all_to_all() const;
  void reduce() const;
  void all_reduce() const;
  void reduce_scatter() const;

 private:
  bool is_root() const { return rank_ == call_.root; }
  bool is_one_step(int64_t bytes) const {
    return size_ == 2 || bytes * (size_ - 1) <= kOneStepBytes;
  }
  const Block& of(std::span<const Block> blocks, int rank) const {
    return blocks[static_cast<size_t>(rank)];
  }
  /// Memory of this rank's buffers.
  Tensor view(const void* data, int64_t count, DType dtype) const {
    return from_memory(const_cast<void*>(data), contiguous_layout({count}), dtype,
                       call_.stream.device, nullptr);
  }
  Tensor bytes(const void* base, const Block& block) const {
    return view(at(base, block.offset), block.bytes, DType::kUInt8);
  }
  Tensor elements(const void* base, int64_t begin, int64_t count) const {
    return view(at(base, begin * itemsize(call_.dtype)), count, call_.dtype);
  }
  Tensor fresh(int64_t count) const { return empty({count}, call_.dtype, call_.stream.device); }

  static void copy_own(const Tensor& to, const Tensor& from) {
    if (to.data() != from.data()) copy_into(to, from);
  }
  template <class PatchOf>
  Patches of_others(const PatchOf& patch) const {
    return patches_of_others(rank_, size_, patch);
  }

  void scatter(const void* send, std::span<const Block> blocks, void* recv) const;
  void gather(const void* send, std::span<const Block> blocks, void* recv) const;
  void all_gather(const void* send, std::span<const Block> blocks, void* recv) const;
  void add_up(const Patches& others, const Tensor& own, const Tensor& out) const;
  /// The takers get the whole vectors of all: on 2 ranks with a and b, each forms a + b.
  void reduce_whole(bool is_taker, std::span<const int> takers) const;
  void reduce_shares(const std::vector<int64_t>& counts, const Tensor& out) const;

  const Collective& call_;
  const int rank_, size_;
  const ExchangeTensors& exchange_;
};

/// Long ones are scattered, then all-gathered: the root's link carries them once.
void ByExchange::broadcast() const {
  if (is_one_step(call_.count)) {
    const Tensor whole = bytes(call_.send, {0, call_.count});
    if (is_root()) return exchange_(of_others([&](int) { return whole; }), {});
    return exchange_({}, Patches{{call_.root, whole}});
  }
  const std::vector<Block> blocks = packed_blocks(even_counts(call_.count, size_));
  char* const mine = at(call_.recv, of(blocks, rank_).offset);
  scatter(call_.send, blocks, mine);
  all_gather(mine, blocks, call_.recv);
}

void ByExchange::scatter(const void* send, std::span<const Block> blocks, void* recv) const {
  const Tensor mine = bytes(recv, {0, of(blocks, rank_).bytes});
  if (!is_root()) return exchange_({}, Patches{{call_.root, mine}});
  copy_own(mine, bytes(send, of(blocks, rank_)));
  exchange_(of_others([&](int peer) { return bytes(send, of(blocks, peer)); }), {});
}

void ByExchange::gather(const void* send, std::span<const Block> blocks, void* recv) const {
  const Tensor mine = bytes(send, {0, of(blocks, rank_).bytes});
  if (!is_root()) return exchange_(Patches{{call_.root, mine}}, {});
  copy_own(bytes(recv, of(blocks, rank_)), mine);
  exchange_({}, of_others([&](int peer) { return bytes(recv, of(blocks, peer)); }));
}

void ByExchange::all_gather(const void* send, std::span<const Block> blocks, void* recv) const {
  const Tensor mine = bytes(send, {0, of(blocks, rank_).bytes});
  copy_own(bytes(recv, of(blocks, rank_)), mine);
  exchange_(of_others([&](int) { return mine; }),
            of_others([&](int peer) { return bytes(recv, of(blocks, peer)); }));
}

void ByExchange::all_to_all() const {
  const auto sent = [&](int peer) { return bytes(call_.send, of(call_.blocks, peer)); };
  const auto received = [&](int peer) { return bytes(call_.recv, of(call_.recv_blocks, peer)); };
  Patches sends = of_others(sent), receives = of_others(received);
  sends.push_back({rank_, sent(rank_)});  // whose lengths are compared there
  receives.push_back({rank_, received(rank_)});
  exchange_(sends, receives);
}

/// `out` may be `own`.
void ByExchange::add_up(const Patches& others, const Tensor& own, const Tensor& out) const {
  std::vector<const void*> inputs(static_cast<size_t>(size_));
  inputs[static_cast<size_t>(rank_)] = own.data();
  for (const Patch& patch : others) inputs[static_cast<size_t>(patch.peer)] = patch.elements.data();
  reduce_in_rank_order(inputs, out.data(), out.size(), call_.dtype, call_.op, call_.stream.device);
}

void ByExchange::reduce_whole(bool is_taker, std::span<const int> takers) const {
  const Tensor own = elements(call_.send, 0, call_.count);
  Patches sends, receives;
  for (const int taker : takers) {
    if (taker != rank_) sends.push_back({taker, own});
  }
  if (is_taker) receives = of_others([&](int) { return fresh(call_.count); });
  exchange_(sends, receives);
  if (is_taker) add_up(receives, own, elements(call_.recv, 0, call_.count));
}

/// On 2 ranks with a = [a0 a1 | a2 a3] and b: rank 0 gets "b0 b1" and keeps a0+b0, a1+b1, rank 1
/// gets "a2 a3" and keeps a2+b2, a3+b3. `out` is this rank's share, and may lie in `send` where
/// that is its own.
void ByExchange::reduce_shares(const std::vector<int64_t>& counts, const Tensor& out) const {
  const std::vector<Block> shares = packed_blocks(counts);
  const int64_t piece = std::max<int64_t>(1, kExchangedBytes / itemsize(call_.dtype));
  const int64_t longest = *std::max_element(counts.begin(), counts.end());
  for (int64_t begin = 0; begin < longest; begin += piece) {
    const auto part = [&](int rank) {
      const Block& share = of(shares, rank);
      const int64_t first = std::min(begin, share.bytes);
      return elements(call_.send, share.offset + first, std::min(piece, share.bytes - first));
    };
    const Tensor own = part(rank_);
    const Patches receives = of_others([&](int) { return fresh(own.size()); });
    exchange_(of_others(part), receives);
    if (own.size() == 0) continue;
    add_up(receives, own,
           view(at(out.data(), begin * itemsize(call_.dtype)), own.size(), call_.dtype));
  }
}

void ByExchange::reduce() const {
  if (is_one_step(call_.count * itemsize(call_.dtype))) {
    return reduce_whole(is_root(), std::span(&call_.root, 1));
  }
  const std::vector<int64_t> counts = even_counts(call_.count, size_);
  const Tensor share = fresh(counts[static_cast<size_t>(rank_)]);
  reduce_shares(counts, share);
  gather(share.data(), packed_blocks(counts, itemsize(call_.dtype)), call_.recv);
}

void ByExchange::all_reduce() const {
  if (is_one_step(call_.count * itemsize(call_.dtype))) {
    return reduce_whole(true, all_ranks(size_));
  }
  const std::vector<int64_t> counts = even_counts(call_.count, size_);
  const std::vector<Block> shares = packed_blocks(counts, itemsize(call_.dtype));
  const Block& mine = of(shares, rank_);
  char* const own = at(call_.recv, mine.offset);
  reduce_shares(counts, view(own, counts[static_cast<size_t>(rank_)], call_.dtype));
  all_gather(own, shares, call_.recv);
}

void ByExchange::reduce_scatter() const {
  const std::vector<int64_t> counts(call_.counts.begin(), call_.counts.end());
  const Tensor out = elements(call_.recv, 0, counts[static_cast<size_t>(rank_)]);
  const int64_t sent = call_.count * itemsize(call_.dtype);
  if (!overlaps(call_.send, sent, out.data(), out.nbytes())) return reduce_shares(counts, out);
  // The first pieces of the result must not overwrite what is still to be read.
  const Tensor kept = fresh(out.size());
  reduce_shares(counts, kept);
  copy_into(out, kept);
}

}  // namespace

int64_t agreed_bytes(const Collective& call) {
  switch (call.kind) {
    case Kind::kBroadcast:
      return call.count;
    case Kind::kScatter:
    case Kind::kGather:
    case Kind::kAllGather:
      return total_bytes(call.blocks);
    case Kind::kReduce:
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return call.count * itemsize(call.dtype);
    default:
      return 0;
  }
}

void run_by_exchange(const Collective& call, int rank, int size, const ExchangeTensors& exchange) {
  const StreamScope scope(call.stream);
  const ByExchange calls(call, rank, size, exchange);
  switch (call.kind) {
    case Kind::kBroadcast:
      return calls.broadcast();
    case Kind::kScatter:
      return calls.scatter();
    case Kind::kGather:
      return calls.gather();
    case Kind::kAllGather:
      return calls.all_gather();
    case Kind::kAllToAll:
      return calls.all_to_all();
    case Kind::kReduce:
      return calls.reduce();
    case Kind::kAllReduce:
      return calls.all_reduce();
    case Kind::kReduceScatter:
      return calls.reduce_scatter();
    default:
      throw ExecutionError(cat(call.name(), ": is not made of exchanges"));
  }
}

}  // namespace cuop::dist
