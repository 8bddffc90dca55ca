#include "cuop/dist/comm/socket.h"

#include <algorithm>
#include <utility>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/p2p_communicator.h"
#include "cuop/dist/comm/socket_hub.h"
#include "cuop/dist/comm/socket_rendezvous.h"

namespace cuop::dist {

namespace {

/// Looks that are answered at once before the process sleeps until something arrives.
constexpr int kSpins = 50;
constexpr double kSleepSeconds = 0.002;  // between two readings of the deadline's clock

/// A number for the communicator that a split makes: all its ranks compute the same one.
uint64_t child_context(uint64_t parent, int64_t split, int color) {
  return std::hash<std::string>{}(cat(parent, "/", split, "/", color));
}

/// Some of the ranks of a hub, numbered anew.
class SocketTransport final : public Transport {
 public:
  struct Members {
    std::vector<int> ranks;          // in the hub
    std::vector<std::string> hosts;  // of each of them
  };

  SocketTransport(std::shared_ptr<SocketHub> hub, Members members, uint64_t context)
      : hub_(std::move(hub)), members_(std::move(members)), context_(context) {
    rank_ = rank_of(hub_->rank());
    const std::string& here = members_.hosts[static_cast<size_t>(rank_)];
    local_size_ = static_cast<int>(std::count(members_.hosts.begin(), members_.hosts.end(), here));
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.ranks.size()); }
  int local_size() const override { return local_size_; }
  std::string_view kind() const override { return "socket"; }

  std::unique_ptr<Request> post_send(const void* data, int64_t bytes,
                                     const Envelope& envelope) override {
    return hub_->post_send(data, bytes, in_hub(envelope.peer),
                           {context_, envelope.epoch, envelope.tag});
  }
  std::unique_ptr<Request> post_recv(void* data, int64_t bytes, const Envelope& envelope) override {
    return hub_->post_recv(data, bytes, in_hub(envelope.peer),
                           {context_, envelope.epoch, envelope.tag});
  }
  void send_control(int dst, const Control& message) noexcept override {
    hub_->send_control(in_hub(dst), context_, message);
  }
  std::optional<Control> poll_control() override {
    std::optional<Control> message = hub_->poll_control(context_);
    if (message) message->src = rank_of(message->src);
    return message;
  }
  void idle(int looks) override {
    // Another thread may have moved what this one waits for: then it looks again.
    const uint64_t seen = std::exchange(seen_, hub_->moves());
    if (looks >= kSpins) hub_->sleep(kSleepSeconds, seen);
  }

  std::shared_ptr<Transport> split(int color, const SplitGroup& group) override {
    const uint64_t context = child_context(context_, ++splits_, color);
    if (group.members.empty()) return nullptr;
    Members part;
    for (int member : group.members) {
      part.ranks.push_back(in_hub(member));
      part.hosts.push_back(members_.hosts[static_cast<size_t>(member)]);
    }
    return std::make_shared<SocketTransport>(hub_, std::move(part), context);
  }
  void note_failure(bool) noexcept override {}

 private:
  int in_hub(int member) const { return members_.ranks[static_cast<size_t>(member)]; }
  int rank_of(int in_hub) const {
    const auto found = std::find(members_.ranks.begin(), members_.ranks.end(), in_hub);
    return static_cast<int>(found - members_.ranks.begin());
  }

  std::shared_ptr<SocketHub> hub_;
  Members members_;
  uint64_t context_;
  int rank_ = 0;
  int local_size_ = 1;
  int64_t splits_ = 0;
  uint64_t seen_ = 0;  // the hub's moves before the last look
};

}  // namespace

std::shared_ptr<Communicator> make_socket_communicator(const SocketRank& rank) {
  if (rank.size < 1 || rank.rank < 0 || rank.rank >= rank.size) {
    throw ExecutionError(cat("socket: rank ", rank.rank, " of ", rank.size, " does not exist"));
  }
  const double timeout = rank.timeout > 0.0 ? rank.timeout : env().comm_timeout.value;
  SocketMesh mesh = connect_mesh(rank, timeout);
  SocketTransport::Members everyone;
  for (int each = 0; each < rank.size; ++each) everyone.ranks.push_back(each);
  everyone.hosts = std::move(mesh.hosts);
  auto hub = std::make_shared<SocketHub>(rank.rank, std::move(mesh.links));
  return std::make_shared<P2pCommunicator>(
      std::make_shared<SocketTransport>(std::move(hub), std::move(everyone), 0), nullptr, timeout);
}

}  // namespace cuop::dist
