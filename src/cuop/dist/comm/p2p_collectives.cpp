#include "cuop/dist/comm/p2p_collectives.h"

#include <algorithm>
#include <vector>

#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist::p2p {

namespace {

/// Up to this many bytes in all, the number of rounds matters more than the bytes moved.
constexpr int64_t kShortBytes = 64 * 1024;

const Block& block_of(std::span<const Block> blocks, int rank) {
  return blocks[static_cast<size_t>(rank)];
}

/// Ranks counted from the root: the root is 0, its successor 1, ...
struct Ring {
  int size;
  int first;
  int rank_at(int position) const { return (first + position) % size; }
  int position_of(int rank) const { return (rank - first + size) % size; }
};

/// Where each position's block starts when the blocks lie one after the other from position 0 on;
/// one entry more for the end.
std::vector<int64_t> packed_offsets(std::span<const Block> blocks, const Ring& ring) {
  std::vector<int64_t> offsets{0};
  for (int position = 0; position < ring.size; ++position) {
    offsets.push_back(offsets.back() + block_of(blocks, ring.rank_at(position)).bytes);
  }
  return offsets;
}

/// The lowest set bit: position p of a binomial tree heads the positions p .. p + subtree - 1.
int subtree_size(int position, int size) {
  if (position != 0) return std::min(position & -position, size - position);
  return size;
}

/// The largest power of two below `size`: the root's first child.
int first_step(int subtree) {
  int step = 1;
  while (step * 2 < subtree) step *= 2;
  return subtree > 1 ? step : 0;
}

/// Positions 0..5: 0 -> 4; then 0 -> 2; then 0 -> 1, 2 -> 3, 4 -> 5: three rounds.
void broadcast_tree(Exchange& x, void* data, int64_t bytes, const Ring& ring) {
  const int position = ring.position_of(x.rank());
  if (position != 0) {
    x.post_recv(data, bytes, ring.rank_at(position & (position - 1)));
    x.wait_all();
  }
  for (int step = first_step(subtree_size(position, ring.size)); step > 0; step /= 2) {
    x.post_send(data, bytes, ring.rank_at(position + step));
  }
  x.wait_all();
}

/// The blocks of a position and of all below it in the tree, one after the other.
struct PackedSubtree {
  PackedSubtree(std::span<const Block> blocks, const Ring& r, int rank)
      : ring(r),
        position(r.position_of(rank)),
        subtree(subtree_size(position, r.size)),
        offsets(packed_offsets(blocks, r)),
        bytes(static_cast<size_t>(offset(position + subtree) - offset(position))) {}
  int64_t offset(int p) const { return offsets[static_cast<size_t>(p)]; }
  int parent() const { return ring.rank_at(position & (position - 1)); }
  int64_t size() const { return static_cast<int64_t>(bytes.size()); }
  /// visit(address, bytes, rank) of each child's part, the largest first.
  template <class Visit>
  void each_child(Visit visit) {
    for (int step = first_step(subtree); step > 0; step /= 2) {
      const int child = position + step, end = child + subtree_size(child, ring.size);
      visit(bytes.data() + (offset(child) - offset(position)), offset(end) - offset(child),
            ring.rank_at(child));
    }
  }

  Ring ring;
  int position, subtree;
  std::vector<int64_t> offsets;
  std::vector<char> bytes;
};

/// Positions 0..3 with blocks a b c d, packed at the root. 0 sends "c d" to 2; then 0 sends "b" to
/// 1 and 2 sends "d" to 3: everybody passes its children their whole subtrees.
void scatter_tree(Exchange& x, const void* send, std::span<const Block> blocks, void* recv,
                  const Ring& ring) {
  PackedSubtree packed(blocks, ring, x.rank());
  if (packed.position == 0) {
    for (int p = 0; p < ring.size; ++p) {
      const Block& block = block_of(blocks, ring.rank_at(p));
      copy_bytes(packed.bytes.data() + packed.offset(p), at(send, block.offset), block.bytes);
    }
  } else {
    x.post_recv(packed.bytes.data(), packed.size(), packed.parent());
    x.wait_all();
  }
  packed.each_child([&](char* part, int64_t bytes, int rank) { x.post_send(part, bytes, rank); });
  x.wait_all();
  copy_bytes(recv, packed.bytes.data(), block_of(blocks, x.rank()).bytes);
}

/// Blocks that lie packed, from position 0 on, to where they belong.
void unpack(std::span<const Block> blocks, const Ring& ring, const char* packed, void* recv) {
  for (int p = 0; p < ring.size; ++p) {
    const Block& block = block_of(blocks, ring.rank_at(p));
    copy_bytes(at(recv, block.offset), packed, block.bytes);
    packed += block.bytes;
  }
}

/// The scatter run backwards: 1 sends "b" to 0 and 3 sends "d" to 2; then 2 sends "c d" to 0.
void gather_tree(Exchange& x, const void* send, std::span<const Block> blocks, void* recv,
                 const Ring& ring) {
  PackedSubtree packed(blocks, ring, x.rank());
  copy_bytes(packed.bytes.data(), send, block_of(blocks, x.rank()).bytes);
  packed.each_child([&](char* part, int64_t bytes, int rank) { x.post_recv(part, bytes, rank); });
  x.wait_all();
  if (packed.position == 0) return unpack(blocks, ring, packed.bytes.data(), recv);
  x.post_send(packed.bytes.data(), packed.size(), packed.parent());
  x.wait_all();
}

/// Bruck's rounds on 5 ranks, seen from rank 0 (blocks a..e of ranks 0..4): has "a"; gets "b" from
/// 1; gets "c d" from 2; gets the missing "e" from 4. Each rank keeps the blocks in its own order,
/// from its own on.
void all_gather_bruck(Exchange& x, const void* send, std::span<const Block> blocks, void* recv) {
  const Ring ring{x.size(), x.rank()};
  const std::vector<int64_t> offsets = packed_offsets(blocks, ring);
  const auto offset = [&](int p) { return offsets[static_cast<size_t>(p)]; };
  std::vector<char> packed(static_cast<size_t>(offset(ring.size)));
  copy_bytes(packed.data(), send, offset(1));
  for (int held = 1; held < ring.size; held *= 2) {
    const int count = std::min(held, ring.size - held);
    x.post_send(packed.data(), offset(count), ring.rank_at(ring.size - held));
    x.post_recv(packed.data() + offset(held), offset(held + count) - offset(held),
                ring.rank_at(held));
    x.wait_all();
  }
  unpack(blocks, ring, packed.data(), recv);
}

/// On 3 ranks with blocks a b c: each sends its own to the next (0 has a c, 1 has a b, 2 has b c),
/// then passes on what it has just got. Every link carries each block once.
void all_gather_ring(Exchange& x, const void* send, std::span<const Block> blocks, void* recv) {
  const Ring ring{x.size(), x.rank()};
  const Block& mine = block_of(blocks, x.rank());
  copy_bytes(at(recv, mine.offset), send, mine.bytes);
  for (int step = 0; step < ring.size - 1; ++step) {
    const Block& out = block_of(blocks, ring.rank_at(ring.size - step));
    const Block& in = block_of(blocks, ring.rank_at(ring.size - step - 1));
    x.post_send(at(recv, out.offset), out.bytes, ring.rank_at(1));
    x.post_recv(at(recv, in.offset), in.bytes, ring.rank_at(ring.size - 1));
    x.wait_all();
  }
}

/// The blocks of all ranks but one.
template <class Post>
void for_others(std::span<const Block> blocks, int root, const Post& post) {
  for (int rank = 0; rank < static_cast<int>(blocks.size()); ++rank) {
    if (rank != root) post(block_of(blocks, rank), rank);
  }
}

}  // namespace

/// Dissemination: in round k rank r signals r + 2^k and awaits r - 2^k. On 3 ranks: 0 -> 1 -> 2 ->
/// 0, then 0 -> 2 -> 1 -> 0; now each has heard from all, directly or not.
void barrier(Exchange& x) {
  const Ring ring{x.size(), x.rank()};
  for (int step = 1; step < ring.size; step *= 2) {
    x.post_signal(ring.rank_at(step));
    x.post_await(ring.rank_at(ring.size - step));
    x.wait_all();
  }
}

/// Long ones are scattered, then all-gathered: on 4 ranks the root sends 3/4 of the bytes once, not
/// all of them twice; then every link carries 3/4.
void broadcast(Exchange& x, void* data, int64_t bytes, int root) {
  if (bytes <= kShortBytes || x.size() <= 2) {
    broadcast_tree(x, data, bytes, {x.size(), root});
    return;
  }
  const std::vector<Block> blocks = packed_blocks(even_counts(bytes, x.size()));
  char* mine = at(data, block_of(blocks, x.rank()).offset);
  scatter(x, data, blocks, mine, root);
  all_gather(x, mine, blocks, data);
}

void scatter(Exchange& x, const void* send, std::span<const Block> blocks, void* recv, int root) {
  if (total_bytes(blocks) <= kShortBytes) {
    scatter_tree(x, send, blocks, recv, {x.size(), root});
    return;
  }
  if (x.rank() != root) {
    x.post_recv(recv, block_of(blocks, x.rank()).bytes, root);
  } else {
    for_others(blocks, root, [&](const Block& block, int rank) {
      x.post_send(at(send, block.offset), block.bytes, rank);
    });
    const Block& mine = block_of(blocks, root);
    copy_bytes(recv, at(send, mine.offset), mine.bytes);
  }
  x.wait_all();
}

void gather(Exchange& x, const void* send, std::span<const Block> blocks, void* recv, int root) {
  if (total_bytes(blocks) <= kShortBytes) {
    gather_tree(x, send, blocks, recv, {x.size(), root});
    return;
  }
  if (x.rank() != root) {
    x.post_send(send, block_of(blocks, x.rank()).bytes, root);
  } else {
    for_others(blocks, root, [&](const Block& block, int rank) {
      x.post_recv(at(recv, block.offset), block.bytes, rank);
    });
    const Block& mine = block_of(blocks, root);
    copy_bytes(at(recv, mine.offset), send, mine.bytes);
  }
  x.wait_all();
}

void all_gather(Exchange& x, const void* send, std::span<const Block> blocks, void* recv) {
  if (total_bytes(blocks) <= kShortBytes) {
    all_gather_bruck(x, send, blocks, recv);
  } else {
    all_gather_ring(x, send, blocks, recv);
  }
}

/// Pairwise: in step s every rank sends to rank + s and receives from rank - s, so that nobody is
/// sent to by two at once. On 3 ranks: 0 -> 1 -> 2 -> 0, then 0 -> 2 -> 1 -> 0.
void all_to_all(Exchange& x, const void* send, std::span<const Block> send_blocks, void* recv,
                std::span<const Block> recv_blocks) {
  const Ring ring{x.size(), x.rank()};
  const Block& own_in = block_of(recv_blocks, x.rank());
  copy_bytes(at(recv, own_in.offset), at(send, block_of(send_blocks, x.rank()).offset),
             own_in.bytes);
  for (int step = 1; step < ring.size; ++step) {
    const int dst = ring.rank_at(step);
    const int src = ring.rank_at(ring.size - step);
    const Block& out = block_of(send_blocks, dst);
    const Block& in = block_of(recv_blocks, src);
    x.post_send(at(send, out.offset), out.bytes, dst);
    x.post_recv(at(recv, in.offset), in.bytes, src);
    x.wait_all();
  }
}

}  // namespace cuop::dist::p2p
