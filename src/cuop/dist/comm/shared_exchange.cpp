#include "cuop/dist/comm/shared_exchange.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/dist/comm/peer_memory.h"

namespace cuop::dist {

namespace {

/// What a rank tells another of the ring between them.
struct RingOffer {
  memory::SharedMemoryName name;
  int64_t offset = 0;
  int64_t slot_bytes = 0;  ///< 0: there is none
};
struct RingVerdict {
  int64_t is_open = 0;  ///< the ring that the sender of this was offered
  int64_t opened = 0;   ///< rings that it has opened in all
};

constexpr int64_t kLeastSlot = 16 << 10, kLargestSlot = 256 << 10;
constexpr int64_t kRingAlignment = 4096;

/// Of rings to so many peers; large slots let copies run long, all together stay small.
int64_t slot_bytes_for(int64_t peers) {
  constexpr int64_t kAll = 8 << 20;
  return std::clamp(kAll / (peers * SharedRing::kSlots), kLeastSlot, kLargestSlot) / kLeastSlot *
         kLeastSlot;
}

/// Whether the ring lies inside of its memory.
bool is_possible(const RingOffer& offer) {
  if (offer.slot_bytes < kLeastSlot || offer.slot_bytes > kLargestSlot) return false;
  const int64_t most = offer.name.bytes - SharedRing::memory_bytes(offer.slot_bytes);
  return offer.offset >= 0 && offer.offset <= most && offer.offset % kRingAlignment == 0;
}

}  // namespace

SharedExchange::SharedExchange(Exchange& x) : peers_(static_cast<size_t>(x.size())) {
  look_around(x);
  offer_rings(x);
  agree(x);
}

void SharedExchange::look_around(Exchange& x) {
  const auto theirs = swap_with_all(x, std::vector<MemoryAddress>(peers_.size(), address_of(this)));
  for (int rank = 0; rank < x.size(); ++rank) {
    const bool is_near = rank != x.rank() && x.is_near(rank);
    peer(rank).is_near = is_near && is_readable(theirs[static_cast<size_t>(rank)]);
  }
}

void SharedExchange::offer_rings(Exchange& x) {
  const int64_t near = std::ranges::count_if(peers_, &Peer::is_near);
  std::vector<RingOffer> mine(peers_.size());
  const int64_t slot_bytes = near > 0 ? slot_bytes_for(near) : 0;
  const int64_t ring_bytes = round_up(SharedRing::memory_bytes(slot_bytes), kRingAlignment);
  try {
    if (near > 0) own_ = memory::SharedMemory::create(near * ring_bytes);
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, "exchange: rank ", x.rank(), " of ", x.size(), ": ", error.what());
  }
  int64_t offset = 0;
  for (int rank = 0; rank < x.size(); ++rank) {
    if (!own_ || !peer(rank).is_near) continue;
    mine[static_cast<size_t>(rank)] = {own_->name(), offset, slot_bytes};
    peer(rank).to.emplace(static_cast<std::byte*>(own_->data()) + offset, slot_bytes);
    offset += ring_bytes;
  }
  const std::vector<RingOffer> theirs = swap_with_all(x, mine);
  for (int rank = 0; rank < x.size(); ++rank) {
    const RingOffer& offer = theirs[static_cast<size_t>(rank)];
    Peer& from = peer(rank);
    if (!from.is_near || offer.slot_bytes == 0) continue;
    if (!is_possible(offer)) x.fail(rank, "offers shared memory that cannot be");
    from.theirs = memory::SharedMemory::open(offer.name);
    if (!from.theirs) continue;
    from.from.emplace(static_cast<std::byte*>(from.theirs->data()) + offer.offset,
                      offer.slot_bytes);
  }
}

void SharedExchange::agree(Exchange& x) {
  const int64_t opened =
      std::ranges::count_if(peers_, [](const Peer& each) { return each.from.has_value(); });
  std::vector<RingVerdict> mine;
  for (const Peer& each : peers_) mine.push_back({each.from ? 1 : 0, opened});
  const std::vector<RingVerdict> theirs = swap_with_all(x, mine);
  is_used_ = opened > 0;
  for (int rank = 0; rank < x.size(); ++rank) {
    const RingVerdict& verdict = theirs[static_cast<size_t>(rank)];
    if (verdict.opened > 0) is_used_ = true;
    if (verdict.is_open == 0) peer(rank).to.reset();
  }
  log(LogLevel::kInfo, "exchange: rank ", x.rank(), " of ", x.size(), ": shares host memory with ",
      opened, " ranks");
}

}  // namespace cuop::dist
