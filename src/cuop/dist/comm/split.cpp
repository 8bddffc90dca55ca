#include "cuop/dist/comm/split.h"

#include <algorithm>
#include <tuple>

#include "cuop/dist/comm/blocks.h"

namespace cuop::dist {

SplitGroup choose_split_group(Communicator& comm, int color, int key, int64_t splits) {
  struct Entry {
    int64_t splits;
    int64_t color, key, rank;
  };
  std::vector<Entry> all = gather_values(comm, Entry{splits, color, key, comm.rank()});
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
