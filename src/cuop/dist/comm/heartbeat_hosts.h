// The way of heartbeats between hosts: each host sends reports (heartbeat_report.h) of all its
// ranks to every rank of the others. They are sent by one rank of the host, the first that lives;
// a later one takes over when those before it are silent for some beats.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/datagrams.h"
#include "cuop/dist/comm/heartbeat_report.h"

namespace cuop::dist {

/// Any thread may send, one thread receives.
class HostReports {
 public:
  /// Rank `rank` of those of which each is on a host and receives at places; `key` is known to them
  /// alone.
  HostReports(Datagrams datagrams, int rank, std::vector<uint64_t> hosts,
              std::vector<Datagrams::Places> places, std::string key);

  uint64_t host_of(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  std::vector<int> descriptors() const { return datagrams_.descriptors(); }
  /// To every rank of the other hosts.
  void send(const std::vector<RankReport>& ranks);
  /// Calls `hear` with what has come, of ranks of the sender's host alone. What was not proven or
  /// has come before is dropped.
  void receive(const std::function<void(const RankReport&)>& hear);
  /// Datagrams that were dropped.
  int64_t dropped() const { return dropped_; }

 private:
  std::mutex mutex_;  // of sending
  Datagrams datagrams_;
  int rank_;
  std::vector<uint64_t> hosts_;
  std::vector<Datagrams::Places> places_;
  std::string key_;
  uint64_t next_ = 1;
  std::vector<uint64_t> heard_;  // the latest number of each sender
  int64_t dropped_ = 0;
};

/// How ranks reach each other: addresses of this host at which it listens, and a secret of the job,
/// "" where the communicator itself is trusted to carry one.
struct HostWay {
  std::vector<std::string> addresses = {};
  std::string secret = {};
};

/// Collective; null where all ranks are on one host. `pages` are those of all ranks.
std::unique_ptr<HostReports> connect_hosts(Communicator& comm, std::span<const PagePlace> pages,
                                           const HostWay& way);

}  // namespace cuop::dist
