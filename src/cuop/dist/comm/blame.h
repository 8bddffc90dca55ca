// Whom a wait that has lasted too long is laid to.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cuop/core/text.h"

namespace cuop::dist {

/// The ranks that one rank says it waits for; none when it says nothing.
using Waits = std::vector<int>;

/// Follows who waits for whom from the ranks in `awaited` on: the first rank that says nothing.
/// Should all those answer, the only one of `members` that does not; -1 when there is none or when
/// there are several. `asking` is the rank whose wait it is. Rank 0 waits for 1, 1 for 2, 2 says
/// nothing: 2. Rank 0 waits for 1 and 1 for 0: -1.
inline int find_silent(const std::vector<Waits>& waits, int asking, std::vector<int> awaited,
                       const std::vector<int>& members) {
  std::vector<bool> is_seen(waits.size(), false);
  is_seen[static_cast<size_t>(asking)] = true;
  for (size_t next = 0; next < awaited.size(); ++next) {
    const auto rank = static_cast<size_t>(awaited[next]);
    if (is_seen[rank]) continue;
    is_seen[rank] = true;
    if (waits[rank].empty()) return awaited[next];
    for (int each : waits[rank]) awaited.push_back(each);
  }
  int silent = -1;
  for (int member : members) {
    if (member == asking || !waits[static_cast<size_t>(member)].empty()) continue;
    if (silent >= 0) return -1;
    silent = member;
  }
  return silent;
}

/// "rank 1", "ranks 1, 2".
inline std::string ranks_text(const std::vector<int>& ranks) {
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks));
}

}  // namespace cuop::dist
