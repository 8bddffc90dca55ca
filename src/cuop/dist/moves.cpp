#include "cuop/dist/moves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cuop/core/hash.h"
#include "cuop/core/interrupt.h"

namespace cuop::dist {
namespace {

/// Equal boxes have equal ones; a thousand boxes are compared by them.
size_t digest_of(const Box& box) {
  size_t digest = box.is_void;
  for (int axis = 0; axis < box.ndim(); ++axis) {
    digest = hash_numbers(digest, box.low[axis], box.high[axis]);
  }
  return digest;
}

/// Ranks that hold the same box.
struct Holders {
  size_t digest = 0;
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
    check_interrupt();
    auto same = groups.end();
    const size_t digest = sources == Sources::kReplicas ? digest_of(box) : 0;
    if (sources == Sources::kReplicas) {
      same = std::find_if(groups.begin(), groups.end(), [&](const Holders& group) {
        return group.digest == digest && group.box == box;
      });
    }
    if (same == groups.end()) {
      groups.push_back({digest, box, {static_cast<int>(rank)}});
    } else {
      same->ranks.push_back(static_cast<int>(rank));
    }
  }
  return groups;
}

/// Boxes with those who hold them, among which those that overlap a box are found without a look at
/// all: of a thousand ranks most lie elsewhere along some axis.
class Owners {
 public:
  Owners(std::span<const Box> boxes, Sources sources) : groups_(group_owners(boxes, sources)) {
    if (groups_.size() < kMany) return;
    size_t most = 1;
    for (int axis = 0; axis < groups_[0].box.ndim(); ++axis) {
      std::set<int64_t> begins;
      for (const Holders& group : groups_) begins.insert(group.box.low[axis]);
      if (begins.size() <= most) continue;
      most = begins.size();
      axis_ = axis;
    }
    if (axis_ < 0) return;
    std::ranges::sort(groups_, {},
                      [axis = axis_](const Holders& group) { return group.box.low[axis]; });
    for (const Holders& group : groups_) {
      const int64_t end = group.box.high[axis_];
      ends_.push_back(ends_.empty() ? end : std::max(end, ends_.back()));
    }
  }

  template <class Visit>
  void for_each_overlapping(const Box& box, Visit&& visit) const {
    size_t first = 0;
    if (axis_ >= 0) {
      const auto behind = std::ranges::upper_bound(ends_, box.low[axis_]);
      first = static_cast<size_t>(behind - ends_.begin());
    }
    for (size_t i = first; i < groups_.size(); ++i) {
      if (axis_ >= 0 && groups_[i].box.low[axis_] >= box.high[axis_]) break;
      if (overlap(groups_[i].box, box)) visit(groups_[i]);
    }
  }

 private:
  static constexpr size_t kMany = 16;

  std::vector<Holders> groups_;  ///< by where they begin along the axis, if there is one
  int axis_ = -1;                ///< along which most of them begin at places of their own
  std::vector<int64_t> ends_;    ///< the farthest end of the groups so far
};

/// Calls visit(src, need index, box) for every non-empty piece, need by need.
template <class Visit>
void for_each_piece(std::span<const Box> owners, std::span<const Need> needs, Sources sources,
                    Visit&& visit) {
  const Owners holders(owners, sources);
  for (size_t i = 0; i < needs.size(); ++i) {
    check_interrupt();
    const Need& need = needs[i];
    holders.for_each_overlapping(need.box, [&](const Holders& group) {
      visit(group.source_for(need.rank), static_cast<int>(i), intersect(group.box, need.box));
    });
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

int64_t Traffic::link(int src, int dst) const {
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& each) {
    return each.src == src && each.dst == dst;
  });
  return found == links.end() ? 0 : found->elements;
}

int64_t Traffic::total() const {
  int64_t sum = 0;
  for (const Link& each : links) sum += each.elements;
  return sum;
}

int64_t Traffic::sent_by(int rank) const {
  int64_t sum = 0;
  for (const Link& each : links) sum += each.src == rank ? each.elements : 0;
  return sum;
}

int64_t Traffic::received_by(int rank) const {
  int64_t sum = 0;
  for (const Link& each : links) sum += each.dst == rank ? each.elements : 0;
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
  std::vector<Count> out(count), in(count), network_out(count), network_in(count);
  const int64_t in_host = ranks_per_host > 0 ? ranks_per_host : ranks;
  for (const Link& each : links) {
    const bool is_near = each.src / in_host == each.dst / in_host;
    (is_near ? out : network_out)[static_cast<size_t>(each.src)].add(each.elements);
    (is_near ? in : network_in)[static_cast<size_t>(each.dst)].add(each.elements);
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
  std::vector<Traffic::Link>& links = traffic.links;
  for_each_piece(owners, needs, sources, [&](int src, int need, const Box& box) {
    const int dst = needs[static_cast<size_t>(need)].rank;
    if (src != dst) links.push_back({src, dst, box.size()});
  });
  const auto comes_before = [](const Traffic::Link& a, const Traffic::Link& b) {
    return std::pair(a.dst, a.src) < std::pair(b.dst, b.src);
  };
  if (!std::is_sorted(links.begin(), links.end(), comes_before)) {
    std::sort(links.begin(), links.end(), comes_before);
  }
  size_t kept = 0;  // several pieces of a link become one
  for (const Traffic::Link& each : links) {
    if (kept > 0 && links[kept - 1].src == each.src && links[kept - 1].dst == each.dst) {
      links[kept - 1].elements += each.elements;
    } else {
      links[kept++] = each;
    }
  }
  links.resize(kept);
  return traffic;
}

}  // namespace cuop::dist
