#include "cuop/dist/relay.h"

#include <algorithm>

namespace cuop::dist {
namespace {

/// To plan what more ranks pass on, each to all others, takes longer than it is worth.
constexpr size_t kMostRelayRanks = 64;

/// The rank that has all there is; -1 where that is not one.
int only_owner(std::span<const Box> owners) {
  int owner = -1;
  for (size_t rank = 0; rank < owners.size(); ++rank) {
    if (owners[rank].empty()) continue;
    if (owner >= 0) return -1;
    owner = static_cast<int>(rank);
  }
  return owner;
}

/// The first axis along which each of so many ranks gets a part; -1 when there is none.
int axis_for(const Box& box, size_t ranks) {
  for (int axis = 0; axis < box.ndim(); ++axis) {
    if (box.interval(axis).length() >= static_cast<int64_t>(ranks)) return axis;
  }
  return -1;
}

}  // namespace

std::optional<Relay> relay_of(std::span<const Box> owners, std::span<const Box> boxes) {
  const int owner = only_owner(owners);
  if (owner < 0 || owners.size() > kMostRelayRanks) return std::nullopt;
  const int ndim = owners[static_cast<size_t>(owner)].ndim();
  const std::vector<Box> none(boxes.size(), empty_box(ndim));
  Relay relay{{boxes.begin(), boxes.end()}, none, none};
  bool is_shared = false;
  for (size_t rank = 0; rank < boxes.size(); ++rank) {
    const Box& box = boxes[rank];
    const bool is_known =
        box.empty() || static_cast<int>(rank) == owner || !relay.shared[rank].empty();
    if (is_known) continue;
    std::vector<size_t> sharing;
    for (size_t other = rank; other < boxes.size(); ++other) {
      if (static_cast<int>(other) == owner || boxes[other].empty()) continue;
      if (boxes[other] == box) {
        sharing.push_back(other);
      } else if (overlap(boxes[other], box)) {
        return std::nullopt;
      }
    }
    const int axis = axis_for(box, sharing.size());
    if (sharing.size() < 2 || axis < 0) continue;
    is_shared = true;
    for (size_t i = 0; i < sharing.size(); ++i) {
      Box part = box;
      part.set_interval(axis, split_evenly(box.interval(axis), static_cast<int64_t>(sharing.size()),
                                           static_cast<int64_t>(i)));
      relay.first[sharing[i]] = relay.parts[sharing[i]] = part;
      relay.shared[sharing[i]] = box;
    }
  }
  if (!is_shared) return std::nullopt;
  return relay;
}

}  // namespace cuop::dist
