// The reducing collectives over messages. Every sum is formed by one rank in rank order, whatever
// the algorithm; only who forms it differs.
#include <algorithm>
#include <vector>

#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/p2p_collectives.h"
#include "cuop/dist/comm/reduction.h"

namespace cuop::dist::p2p {

namespace {

/// Vectors up to this many bytes travel whole to whoever needs the result.
constexpr int64_t kShortSumBytes = 8 * 1024;
/// Bytes of one rank's contribution that are in flight and in memory at a time.
constexpr int64_t kPieceBytes = 512 * 1024;

void reduce_rows(const std::vector<char>& rows, int64_t bytes, int ranks, void* recv, int64_t count,
                 CombineRule what) {
  std::vector<const void*> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(rows.data() + rank * bytes);
  reduce_in_rank_order(inputs, recv, count, what.dtype, what.op);
}

}  // namespace

/// On 2 ranks with a = [a0 a1 | a2 a3] and b: rank 0 gets "b0 b1" and keeps [a0+b0 a1+b1], rank 1
/// gets "a2 a3" and keeps [a2+b2 a3+b3]. Long segments go piece by piece, so that only a piece of
/// each rank's is held at a time.
void reduce_scatter(Exchange& x, const void* send, void* recv, std::span<const int64_t> counts,
                    CombineRule what) {
  const int64_t item = itemsize(what.dtype);
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / item);
  const std::vector<Block> segments = packed_blocks(counts, item);
  const auto self = static_cast<size_t>(x.rank());
  const int64_t longest = *std::max_element(counts.begin(), counts.end());
  const int64_t row = std::min(piece, counts[self]) * item;
  std::vector<char> rows(static_cast<size_t>(row * x.size()));
  for (int64_t begin = 0; begin < longest; begin += piece) {
    const auto length = [&](size_t rank) {
      return std::clamp<int64_t>(counts[rank] - begin, 0, piece);
    };
    std::vector<const void*> inputs(static_cast<size_t>(x.size()));
    inputs[self] = at(send, segments[self].offset + begin * item);
    for (int step = 1; step < x.size(); ++step) {
      const int dst = (x.rank() + step) % x.size();
      const int src = (x.rank() - step + x.size()) % x.size();
      const auto to = static_cast<size_t>(dst);
      char* place = rows.data() + src * row;
      inputs[static_cast<size_t>(src)] = place;
      x.post_recv(place, length(self) * item, src);
      x.post_send(at(send, segments[to].offset + begin * item), length(to) * item, dst);
    }
    x.wait_all();
    reduce_in_rank_order(inputs, at(recv, begin * item), length(self), what.dtype, what.op);
  }
}

/// Short: every vector to the root, which adds. Long: each rank adds its segment, the root gathers.
void reduce(Exchange& x, const void* send, void* recv, int64_t count, CombineRule what, int root) {
  const int64_t item = itemsize(what.dtype);
  if (count * item <= kShortSumBytes) {
    std::vector<char> rows(x.rank() == root ? static_cast<size_t>(count * item * x.size()) : 0);
    gather(x, send, equal_blocks(x.size(), count * item), rows.data(), root);
    if (x.rank() == root) reduce_rows(rows, count * item, x.size(), recv, count, what);
    return;
  }
  const std::vector<int64_t> counts = even_counts(count, x.size());
  std::vector<char> own(static_cast<size_t>(counts[static_cast<size_t>(x.rank())] * item));
  reduce_scatter(x, send, own.data(), counts, what);
  gather(x, own.data(), packed_blocks(counts, item), recv, root);
}

/// Short: everybody gets all vectors and adds for itself. Long: each rank adds its segment, then
/// all are gathered everywhere: 2 (P-1)/P of the vector leave each rank, the least possible.
void all_reduce(Exchange& x, const void* send, void* recv, int64_t count, CombineRule what) {
  const int64_t item = itemsize(what.dtype);
  if (count * item <= kShortSumBytes) {
    std::vector<char> rows(static_cast<size_t>(count * item * x.size()));
    all_gather(x, send, equal_blocks(x.size(), count * item), rows.data());
    reduce_rows(rows, count * item, x.size(), recv, count, what);
    return;
  }
  const std::vector<int64_t> counts = even_counts(count, x.size());
  const std::vector<Block> segments = packed_blocks(counts, item);
  // In place is safe: a rank's own segment of its own input is needed by nobody else.
  char* own = at(recv, segments[static_cast<size_t>(x.rank())].offset);
  reduce_scatter(x, send, own, counts, what);
  all_gather(x, own, segments, recv);
}

}  // namespace cuop::dist::p2p
