// Ranks that stay: threads of the process that wait for the next call.
#pragma once

#include "cuop/dist/comm/run_ranks.h"

namespace cuop::dist {

/// Calls `work` on ranks as run_ranks does, on threads and communicators that an earlier call has
/// left, if there are some for these devices. What a rank's thread remembers (plans, idle memory,
/// its figures for planning) is there in the next call. Work that raises on some rank or is
/// interrupted ends its ranks: the next call gets new ones. Any threads may call, also from inside
/// of such work: each gets ranks of its own. All ranks have ended `work` and let go of it when this
/// returns.
///
/// The ranks of up to kIdleTeams calls stay; those that were not used for the longest time end.
void run_on_team(int ranks, Device first, const RankWork& work);
inline constexpr size_t kIdleTeams = 4;

}  // namespace cuop::dist
