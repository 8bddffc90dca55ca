// Who sends which piece to whom: a pure function of what ranks own and what ranks need. A
// redistribution, a scatter, a gather, a halo exchange and a reduction over ranks are all lists of
// needs; a piece is the intersection of a need with an owner's box.
//
// Worked example: 4 x 4, owned in rows by 2 ranks ([0:2, 0:4], [2:4, 0:4]) and needed in columns
// ([0:4, 0:2] by rank 0, [0:4, 2:4] by rank 1). Rank 0 keeps [0:2, 0:2] and sends [0:2, 2:4] to
// rank 1; rank 1 keeps [2:4, 2:4] and sends [2:4, 0:2] to rank 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuop/core/box.h"

namespace cuop::dist {

/// A box that a rank wants. A rank may have several, overlapping ones too.
struct Need {
  int rank = 0;
  Box box;
};

enum class Sources : uint8_t {
  kReplicas,  ///< equal boxes hold the same data: one of their owners sends; unequal ones are
              ///< disjoint
  kAll,       ///< every owner contributes what it has of the box (partial results to be combined)
};

struct Piece {
  int need = 0;  ///< index into the needs
  int peer = 0;  ///< destination of a send, source of a receive
  Box box;       ///< global indices
};

/// One rank's part. Sends and receives are in order of the peer, then of the need, so that both
/// ends agree on which piece is which.
struct RankMoves {
  std::vector<Piece> sends;
  std::vector<Piece> receives;
  std::vector<Piece> kept;  ///< from itself to itself, never sent
  bool is_local = true;     ///< no rank sends anything: the exchange can be left out everywhere
};

RankMoves plan_moves(int rank, std::span<const Box> owners, std::span<const Need> needs,
                     Sources sources = Sources::kReplicas);

/// One need a rank: rank r needs boxes[r] (none where it is empty).
std::vector<Need> needs_of(std::span<const Box> boxes);

/// How many elements travel on each link that carries any; none leads from a rank to itself. Of a
/// thousand ranks most links are idle when one of them has everything.
struct Traffic {
  struct Link {
    int src = 0, dst = 0;
    int64_t elements = 0;
  };
  int ranks = 0;
  std::vector<Link> links;  ///< each once

  int64_t link(int src, int dst) const;
  int64_t total() const;
  int64_t sent_by(int rank) const;
  int64_t received_by(int rank) const;
  /// The most that any one rank sends or receives: what bounds the time.
  int64_t busiest() const;
  /// Messages (links with traffic) of the rank that has most of them.
  int64_t most_messages() const;
  /// Elements and messages of the ranks that have most of them on the links between ranks of one
  /// host, which are `ranks_per_host` in a row (0: all), and on those between hosts.
  struct Busiest {
    int64_t elements = 0, messages = 0;
    int64_t network_elements = 0, network_messages = 0;
  };
  Busiest busiest_links(int64_t ranks_per_host) const;
};
Traffic plan_traffic(std::span<const Box> owners, std::span<const Need> needs,
                     Sources sources = Sources::kReplicas);

}  // namespace cuop::dist
