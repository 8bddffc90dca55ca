// Exchanges of tensors between processes of one host through memory that they share: the sender
// copies piece by piece from where a tensor lies into slots of a ring (shared_ring.h), the receiver
// from there to where it belongs, of any layout on either side. Pieces are blocks that the caches
// hold, so that a transpose on the way costs little and the slots are never read from memory.
//
// Ranks agree on it once: who can read whose memory at all, where its rings are, who has opened
// them. What goes to a rank that has not (on another host, in a container) goes as a message.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/p2p_collectives.h"
#include "cuop/dist/comm/shared_ring.h"
#include "cuop/memory/shared_memory.h"

namespace cuop::dist {

/// Of one communicator, and used within its calls.
class SharedExchange {
 public:
  /// Collective.
  explicit SharedExchange(Exchange& x);

  /// Whether any rank reaches another through a ring: the same on all ranks.
  bool is_used() const { return is_used_; }

  /// The call on all ranks. Returns when what is received is there and what is sent was copied.
  void exchange(Exchange& x, const Collective& call);

 private:
  struct Peer {
    bool is_near = false;  ///< on this host, and this rank can read its memory
    std::optional<SharedRing> to, from;
    std::shared_ptr<memory::SharedMemory> theirs;  ///< of `from`
  };
  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  void look_around(Exchange& x);
  void offer_rings(Exchange& x);
  void agree(Exchange& x);

  std::vector<Peer> peers_;
  std::shared_ptr<memory::SharedMemory> own_;  ///< of all `to`
  int64_t calls_ = 0;
  bool is_used_ = false;
};

}  // namespace cuop::dist
