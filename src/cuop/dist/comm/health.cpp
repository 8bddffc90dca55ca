#include "cuop/dist/comm/health.h"

#include <algorithm>

namespace cuop::dist {

using State = RankHealth::State;

const char* RankHealth::name() const {
  constexpr const char* kNames[] = {"alive", "stuck",     "stopped", "left",
                                    "dead",  "unwatched", "lost"};
  return kNames[static_cast<size_t>(state)];
}

namespace {

bool is_held_up(const SeenRank& rank, double limit) {
  return rank.health.state == State::kAlive && !rank.health.operation.empty() &&
         rank.health.seconds > limit;
}

bool is_stuck(const std::vector<SeenRank>& ranks, size_t rank, double limit) {
  if (!is_held_up(ranks[rank], limit)) return false;
  std::vector<int> reached = ranks[rank].awaited;
  for (size_t next = 0; next < reached.size(); ++next) {
    const SeenRank& other = ranks[static_cast<size_t>(reached[next])];
    if (!is_held_up(other, limit) || other.awaited.empty()) return false;
    for (const int each : other.awaited) {
      if (std::count(reached.begin(), reached.end(), each) == 0) reached.push_back(each);
    }
  }
  return true;
}

}  // namespace

void mark_stuck(std::vector<SeenRank>& ranks, double limit) {
  std::vector<size_t> stuck;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (is_stuck(ranks, rank, limit)) stuck.push_back(rank);
  }
  for (const size_t rank : stuck) ranks[rank].health.state = State::kStuck;
}

}  // namespace cuop::dist
