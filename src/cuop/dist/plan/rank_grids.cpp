#include "cuop/dist/plan/rank_grids.h"

#include <algorithm>
#include <array>

namespace cuop::dist {
namespace {

constexpr std::array<const char*, 4> kStrategies = {"row", "column", "block_2d", "k_split"};

std::vector<RankGrid> grids_of(int size, bool splits_k) {
  std::vector<RankGrid> grids;
  for (int k = 1; k <= (splits_k ? size : 1); ++k) {
    if (size % k != 0) continue;
    for (int m = size / k; m >= 1; --m) {
      if (size / k % m == 0) grids.push_back({m, size / k / m, k});
    }
  }
  return grids;
}

bool has(const std::vector<NamedGrid>& grids, std::string_view strategy) {
  return std::any_of(grids.begin(), grids.end(),
                     [&](const NamedGrid& each) { return each.strategy == strategy; });
}

}  // namespace

const char* RankGrid::strategy() const {
  if (k > 1) return "k_split";
  if (m > 1 && n > 1) return "block_2d";
  return n > 1 ? "column" : "row";
}

std::vector<NamedGrid> named_grids(int ranks, std::string_view forced, GridChoice choice) {
  constexpr int kAllSizes = 16;  // of more ranks only grids that leave less than an eighth idle
  constexpr int kMostIdle =
      8;                    // nor more than so many: there is a size with many divisors among them
  constexpr int kFew = 64;  // of more ranks a size that has enough grids is the last one
  constexpr size_t kEnough = 20;
  const auto known = kStrategies.begin() + (choice.splits_k ? 4 : 3);
  const bool is_named = std::find(kStrategies.begin(), known, forced) != known;
  std::vector<NamedGrid> named;
  for (int size = ranks; size > 1; --size) {
    if (size < ranks && (has(named, forced) || !(choice.leaves_idle || is_named))) break;
    if (ranks > kAllSizes && size <= ranks - std::min(ranks / 8, kMostIdle)) break;
    const std::vector<RankGrid> grids = grids_of(size, choice.splits_k);
    for (const RankGrid& grid : grids) {
      const bool is_asked_for = size == ranks || choice.leaves_idle || grid.strategy() == forced;
      if (is_asked_for) named.push_back({grid.strategy(), grid});
    }
    const bool has_forced = !is_named || has(named, forced);
    if (ranks > kFew && grids.size() >= kEnough && has_forced) break;
  }
  for (auto strategy = kStrategies.begin(); strategy != known; ++strategy) {
    if (!has(named, *strategy)) named.push_back({*strategy, {1, ranks, 1}});
  }
  return named;
}

}  // namespace cuop::dist
