#include "cuop/dist/comm/split.h"

#include <algorithm>
#include <tuple>

namespace cuop::dist {

SplitGroup choose_split_group(Communicator& comm, int color, int key, int64_t splits) {
  struct Entry {
    int64_t splits;
    int64_t color, key, rank;
  };
  const Entry mine{splits, color, key, comm.rank()};
  std::vector<Entry> all(static_cast<size_t>(comm.size()));
  std::vector<Block> blocks;
  for (int rank = 0; rank < comm.size(); ++rank) {
    blocks.push_back({rank * static_cast<int64_t>(sizeof(Entry)), sizeof(Entry)});
  }
  comm.all_gather(&mine, blocks, all.data());
  SplitGroup group;
  for (const Entry& entry : all) group.number = std::max(group.number, entry.splits + 1);
  if (color < 0) return group;
  std::erase_if(all, [&](const Entry& entry) { return entry.color != color; });
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
  });
  for (const Entry& entry : all) {
    if (entry.rank == comm.rank()) group.rank = static_cast<int>(group.members.size());
    group.members.push_back(static_cast<int>(entry.rank));
  }
  return group;
}

}  // namespace cuop::dist
