#include "cuop/dist/comm/socket.h"

#include <algorithm>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/p2p_communicator.h"
#include "cuop/dist/comm/socket_hub.h"
#include "cuop/dist/comm/socket_rendezvous.h"

namespace cuop::dist {

std::shared_ptr<Communicator> make_socket_communicator(const SocketRank& rank) {
  if (rank.size < 1 || rank.rank < 0 || rank.rank >= rank.size) {
    throw ExecutionError(cat("socket: rank ", rank.rank, " of ", rank.size, " does not exist"));
  }
  const double timeout = rank.timeout > 0.0 ? rank.timeout : env().comm_timeout.value;
  SocketMesh mesh = connect_mesh(rank, timeout);
  HostWay way{{}, mesh.key};
  for (const Socket& link : mesh.links) {
    if (!link.is_open()) continue;
    const std::string address = local_address(link);
    if (std::ranges::count(way.addresses, address) == 0) way.addresses.push_back(address);
  }
  auto hub = std::make_shared<SocketHub>(rank.rank, std::move(mesh.links), std::move(mesh.hosts));
  auto comm = std::make_shared<P2pCommunicator>(
      make_group_transport(std::move(hub), all_ranks(rank.size), 0), nullptr, timeout);
  if (rank.size > 1) comm->start_heartbeat(way);
  return comm;
}

}  // namespace cuop::dist
