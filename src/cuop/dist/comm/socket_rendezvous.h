// How processes that know only the address of rank 0 come to be connected, each with each.
#pragma once

#include <string>
#include <vector>

#include "cuop/dist/comm/socket_link.h"
#include "cuop/dist/comm/socket_rank.h"

namespace cuop::dist {

struct SocketMesh {
  std::vector<Socket> links;       ///< to every rank; this rank's own place is closed
  std::vector<std::string> hosts;  ///< the host name of every rank
  std::string key = {};            ///< that ranks of the job know and nobody else
};

/// Collective. Rank 0 listens at its address alone, on the first free one of the kRendezvousPorts
/// ports above `port` (which itself belongs to the launcher); the others try them all at once and
/// know it by its proof (socket_greeting.h). On 3 ranks: 1 and 2 greet 0 and tell where they
/// listen, which is at the address from which they reach 0; 0 answers with everybody's place; 2
/// connects to
/// 1. CommunicationError naming who did not come within `timeout` seconds. The user may interrupt
/// it (interrupt.h).
SocketMesh connect_mesh(const SocketRank& rank, double timeout);

inline constexpr int kRendezvousPorts = 16;
/// A rank has a connection, thus a file descriptor, for every other.
inline constexpr int kMostSocketRanks = 4096;

}  // namespace cuop::dist
