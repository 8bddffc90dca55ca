#include "cuop/dist/moves.h"

#include <algorithm>

namespace cuop::dist {
namespace {

/// Ranks that hold the same box.
struct Holders {
  Box box;
  std::vector<int> ranks;

  /// A rank that has the box itself never asks another; the others are spread over the holders.
  int source_for(int rank) const {
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return rank;
    return ranks[static_cast<size_t>(rank) % ranks.size()];
  }
};

std::vector<Holders> group_owners(std::span<const Box> owners, Sources sources) {
  std::vector<Holders> groups;
  for (size_t rank = 0; rank < owners.size(); ++rank) {
    const Box& box = owners[rank];
    if (box.empty()) continue;
    auto same = groups.end();
    if (sources == Sources::kReplicas) {
      same = std::find_if(groups.begin(), groups.end(),
                          [&](const Holders& group) { return group.box == box; });
    }
    if (same == groups.end()) {
      groups.push_back({box, {static_cast<int>(rank)}});
    } else {
      same->ranks.push_back(static_cast<int>(rank));
    }
  }
  return groups;
}

/// Calls visit(src, need index, box) for every non-empty piece, need by need.
template <class Visit>
void for_each_piece(std::span<const Box> owners, std::span<const Need> needs, Sources sources,
                    Visit&& visit) {
  const std::vector<Holders> groups = group_owners(owners, sources);
  for (size_t i = 0; i < needs.size(); ++i) {
    for (const Holders& group : groups) {
      if (!overlap(group.box, needs[i].box)) continue;
      visit(group.source_for(needs[i].rank), static_cast<int>(i),
            intersect(group.box, needs[i].box));
    }
  }
}

/// Needs stay in order.
void sort_by_peer(std::vector<Piece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.peer < b.peer; });
}

}  // namespace

RankMoves plan_moves(int rank, std::span<const Box> owners, std::span<const Need> needs,
                     Sources sources) {
  RankMoves moves;
  for_each_piece(owners, needs, sources, [&](int src, int need, const Box& box) {
    const int dst = needs[static_cast<size_t>(need)].rank;
    if (src != dst) moves.is_local = false;
    if (src == rank && dst == rank) {
      moves.kept.push_back({need, rank, box});
    } else if (src == rank) {
      moves.sends.push_back({need, dst, box});
    } else if (dst == rank) {
      moves.receives.push_back({need, src, box});
    }
  });
  sort_by_peer(moves.sends);
  sort_by_peer(moves.receives);
  return moves;
}

std::vector<Need> needs_of(std::span<const Box> boxes) {
  std::vector<Need> needs;
  for (size_t rank = 0; rank < boxes.size(); ++rank) {
    if (!boxes[rank].empty()) needs.push_back({static_cast<int>(rank), boxes[rank]});
  }
  return needs;
}

int64_t Traffic::total() const {
  int64_t sum = 0;
  for (const int64_t count : elements) sum += count;
  return sum;
}

int64_t Traffic::sent_by(int rank) const {
  int64_t sum = 0;
  for (int dst = 0; dst < ranks; ++dst) sum += link(rank, dst);
  return sum;
}

int64_t Traffic::received_by(int rank) const {
  int64_t sum = 0;
  for (int src = 0; src < ranks; ++src) sum += link(src, rank);
  return sum;
}

int64_t Traffic::busiest() const { return busiest_links(0).elements; }

int64_t Traffic::most_messages() const { return busiest_links(0).messages; }

Traffic::Busiest Traffic::busiest_links(int64_t ranks_per_host) const {
  struct Count {
    int64_t elements = 0, messages = 0;
    void add(int64_t sent) {
      elements += sent;
      ++messages;
    }
  };
  const auto count = static_cast<size_t>(ranks);
  // In the order in which the links lie in memory: there may be millions.
  std::vector<Count> out(count), in(count), network_out(count), network_in(count);
  const int64_t in_host = ranks_per_host > 0 ? ranks_per_host : ranks;
  for (size_t src = 0, place = 0; src < count; ++src) {
    const int64_t host = static_cast<int64_t>(src) / in_host;
    const int64_t low = host * in_host, high = low + in_host;
    for (size_t dst = 0; dst < count; ++dst, ++place) {
      if (elements[place] == 0) continue;
      const auto to = static_cast<int64_t>(dst);
      const bool is_near = low <= to && to < high;
      (is_near ? out : network_out)[src].add(elements[place]);
      (is_near ? in : network_in)[dst].add(elements[place]);
    }
  }
  Busiest most;
  for (size_t rank = 0; rank < count; ++rank) {
    most.elements = std::max({most.elements, out[rank].elements, in[rank].elements});
    most.messages = std::max({most.messages, out[rank].messages, in[rank].messages});
    most.network_elements =
        std::max({most.network_elements, network_out[rank].elements, network_in[rank].elements});
    most.network_messages =
        std::max({most.network_messages, network_out[rank].messages, network_in[rank].messages});
  }
  return most;
}

Traffic plan_traffic(std::span<const Box> owners, std::span<const Need> needs, Sources sources) {
  Traffic traffic{static_cast<int>(owners.size()), {}};
  traffic.elements.resize(owners.size() * owners.size());
  for_each_piece(owners, needs, sources, [&](int src, int need, const Box& box) {
    const int dst = needs[static_cast<size_t>(need)].rank;
    if (src == dst) return;
    traffic.elements[static_cast<size_t>(src) * owners.size() + static_cast<size_t>(dst)] +=
        box.size();
  });
  return traffic;
}

}  // namespace cuop::dist
