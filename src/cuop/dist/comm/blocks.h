// How the blocks of the ranks lie in one buffer.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

inline int64_t total_bytes(std::span<const Block> blocks) {
  int64_t total = 0;
  for (const Block& block : blocks) total += block.bytes;
  return total;
}

/// One after the other: counts {2, 3} of 4 bytes -> {0, 8}, {8, 12}.
inline std::vector<Block> packed_blocks(std::span<const int64_t> counts, int64_t item = 1) {
  std::vector<Block> blocks;
  int64_t offset = 0;
  for (int64_t count : counts) {
    blocks.push_back({offset, count * item});
    offset += count * item;
  }
  return blocks;
}

/// The same for blocks that lie elsewhere.
inline std::vector<Block> packed_blocks(std::span<const Block> elsewhere) {
  std::vector<int64_t> bytes;
  for (const Block& block : elsewhere) bytes.push_back(block.bytes);
  return packed_blocks(bytes);
}

inline std::vector<Block> equal_blocks(int ranks, int64_t bytes) {
  return packed_blocks(std::vector<int64_t>(static_cast<size_t>(ranks), bytes));
}

/// 7 among 2 -> 3, 4.
inline std::vector<int64_t> even_counts(int64_t count, int ranks) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    counts.push_back(count * (rank + 1) / ranks - count * rank / ranks);
  }
  return counts;
}

/// 0, 1, ...
inline std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// The value of each rank. Collective.
template <class T>
std::vector<T> gather_values(Communicator& comm, const T& value) {
  std::vector<T> values(static_cast<size_t>(comm.size()));
  comm.all_gather(&value, equal_blocks(comm.size(), sizeof(T)), values.data());
  return values;
}

}  // namespace cuop::dist
