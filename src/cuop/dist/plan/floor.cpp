#include "cuop/dist/plan/floor.h"

#include <algorithm>

#include "cuop/core/byte_size.h"

namespace cuop::dist {
namespace {

/// Bytes a second over all links of a rank, which may work at the same time.
double link_bandwidth(const Machine& machine, int ranks) {
  return machine.link_bandwidth + (machine.has_network(ranks) ? machine.network_bandwidth : 0.0);
}

/// Before the first byte of anything has arrived.
double first_byte(const Machine& machine, int ranks) {
  const double within = machine.latency + machine.message_overhead;
  const double between = machine.network_latency + machine.network_overhead;
  if (!machine.has_network(ranks)) return within;
  return machine.ranks_per_host == 1 ? between : std::min(within, between);
}

/// The share of its rank by which work and links take the same time.
double balanced_share(const TiedBytes& tied, double bandwidth) {
  const double links = tied.bytes / bandwidth;
  return links > 0.0 ? tied.share * links / (tied.seconds + links) : 0.0;
}

}  // namespace

Least least_of(const Machine& machine, double flops, double bytes, DType dtype, double efficiency) {
  Least least;
  least.flops = flops;
  least.bytes = bytes;
  least.seconds = std::max(compute_seconds(machine, flops / efficiency, 0, dtype),
                           bytes / machine.memory_bandwidth);
  return least;
}

Floor floor_of(const Least& least, const Machine& machine, int ranks) {
  Floor floor{least.seconds, least.flops, whole_bytes(least.bytes), 0};
  if (ranks == 1) return floor;
  const double bandwidth = link_bandwidth(machine, ranks), start = first_byte(machine, ranks);
  floor.seconds = least.seconds / ranks;
  double link_bytes = least.received;
  if (least.received > 0.0) {
    floor.seconds = std::max(floor.seconds, start + least.received / bandwidth);
  }
  for (const TiedBytes& tied : {least.in, least.out}) {
    const double share = std::max(balanced_share(tied, bandwidth), 1.0 / ranks);
    if (tied.share <= share) continue;
    floor.seconds = std::max(floor.seconds, share * tied.seconds);
    link_bytes = std::max(link_bytes, (tied.share - share) * tied.bytes);
  }
  // Unless one rank does all of it something has to arrive.
  if (least.is_rooted) {
    const double shared = std::max(floor.seconds, start);
    floor.seconds = std::min(least.seconds, shared);
    if (least.seconds <= shared) link_bytes = 0;
  }
  floor.link_bytes = whole_bytes(link_bytes);
  return floor;
}

double largest_share(const Sharding& sharding, const Shape& shape) {
  return largest_share(sharding, shape, whole_box(shape));
}

double largest_share(const Sharding& sharding, const Shape& shape, const Box& of) {
  if (of.empty()) return 0.0;
  double all = 0, most = 0;
  for (const Box& box : sharding.owner_boxes(shape)) {
    const auto size = static_cast<double>(intersect(box, of).size());
    all += size;
    most = std::max(most, size);
  }
  const auto count = static_cast<double>(of.size());
  return all > count ? 0.0 : most / count;
}

double wanted_share(const std::optional<Sharding>& wanted, const Shape& shape) {
  const int64_t count = element_count(shape);
  if (!wanted || count == 0) return 0.0;
  int64_t most = 0;
  for (const Box& box : wanted->owner_boxes(shape)) most = std::max(most, box.size());
  return static_cast<double>(most) / static_cast<double>(count);
}

}  // namespace cuop::dist
