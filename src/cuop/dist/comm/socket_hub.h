// Messages over the TCP connections of one process, for all communicators over them. Each
// communicator may be driven by a thread of its own: every call is made under one lock, which
// nobody holds while it sleeps, and a thread that moves what another one waits for wakes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/comm/hub.h"
#include "cuop/dist/comm/socket_peer.h"

namespace cuop::dist {

class SocketHub final : public Hub {
 public:
  /// A connection to every other rank; this rank's own place is closed. `hosts` names the host of
  /// every rank.
  SocketHub(int rank, std::vector<Socket> links, std::vector<std::string> hosts);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  std::string_view kind() const override { return "socket"; }
  int host_of(int rank) const override;
  DeliveryPtr post_send(const void* data, int64_t bytes, int dst, const MessageKey& key) override;
  DeliveryPtr post_recv(void* data, int64_t bytes, int src, const MessageKey& key) override;
  void send_control(int dst, uint64_t context, const Control& message) noexcept override;
  std::optional<Control> poll_control(uint64_t context) override;
  void flush() noexcept override;
  void idle(int looks, uint64_t& seen) override;
  void note_failure(bool) noexcept override {}
  bool is_lost(int rank) override;
  void note_gone(int) noexcept override {}  // its connection ends with one of the processes

  /// Moves what can be moved now. A lost connection is kept for whoever waits for its rank.
  void progress();
  /// Counts whatever has moved so far.
  uint64_t moves() const { return moves_; }
  /// Sleeps until something can be moved, at most `seconds`; not at all when anything has moved
  /// since the caller read moves() to be `seen`.
  void sleep(double seconds, uint64_t seen);

 private:
  template <class Message>
  class UnderWay;
  class Sending;
  class Receiving;

  SocketPeer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  void progress_locked();
  void tell_sleepers();
  void keep(int src, const SocketPeer::Notice& notice);

  int rank_;
  std::vector<std::string> hosts_;
  std::mutex mutex_;  // of all below, but for what is atomic
  std::vector<SocketPeer> peers_;
  std::map<uint64_t, std::deque<Control>> controls_;
  size_t kept_controls_ = 0;
  std::vector<SocketPeer::Notice> arrived_;

  std::atomic<uint64_t> moves_ = 0;
  Alarm alarm_;                      // for the thread that sleeps at the sockets
  std::condition_variable changed_;  // for the others that sleep
  bool is_watched_ = false;          // one sleeps at the sockets
  std::vector<Interest> watched_;    // and for these
};

}  // namespace cuop::dist
