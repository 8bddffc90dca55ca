#include "cuop/dist/comm/heartbeat_hosts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cuop/core/log.h"
#include "cuop/core/sha256.h"
#include "cuop/dist/comm/blocks.h"

namespace cuop::dist {

namespace {

/// Read in one go, however fast they come: the own heartbeat goes on.
constexpr int kMostAtOnce = 4096;
constexpr size_t kHostNonceBytes = 32;

}  // namespace

HostReports::HostReports(Datagrams datagrams, int rank, std::vector<uint64_t> hosts,
                         std::vector<Datagrams::Places> places, std::string key)
    : datagrams_(std::move(datagrams)),
      rank_(rank),
      hosts_(std::move(hosts)),
      places_(std::move(places)),
      key_(std::move(key)),
      heard_(hosts_.size(), 0) {}

void HostReports::send(const std::vector<RankReport>& ranks) {
  const std::lock_guard lock(mutex_);
  for (const std::string& datagram : write_reports(key_, rank_, next_, ranks)) {
    for (size_t other = 0; other < hosts_.size(); ++other) {
      if (hosts_[other] != host_of(rank_)) datagrams_.send(places_[other], datagram);
    }
  }
}

void HostReports::receive(const std::function<void(const RankReport&)>& hear) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    // One byte more than any report has: a longer one is none.
    const auto datagram = datagrams_.receive(kReportBytes + 1);
    if (!datagram) return;
    const auto report = read_report(key_, *datagram, static_cast<int>(hosts_.size()));
    const uint64_t host = report ? host_of(report->sender) : 0;
    const bool is_of_host = report && host != host_of(rank_) &&
                            std::ranges::all_of(report->ranks, [&](const RankReport& each) {
                              return host_of(each.rank) == host;
                            });
    if (!is_of_host || report->number <= heard_[static_cast<size_t>(report->sender)]) {
      ++dropped_;
      continue;
    }
    heard_[static_cast<size_t>(report->sender)] = report->number;
    for (const RankReport& each : report->ranks) hear(each);
  }
}

std::unique_ptr<HostReports> connect_hosts(Communicator& comm, std::span<const PagePlace> pages,
                                           const HostWay& way) {
  std::vector<uint64_t> hosts;
  for (const PagePlace& page : pages) hosts.push_back(page.host);
  if (std::ranges::all_of(hosts, [&](uint64_t host) { return host == hosts[0]; })) return nullptr;
  Datagrams datagrams(way.addresses);
  if (datagrams.descriptors().empty()) {
    log(LogLevel::kWarn, "heartbeat: rank ", comm.rank(), " has no address for those of other ",
        "hosts; they know it by its connection alone");
  }
  std::vector<Datagrams::Places> places = gather_values(comm, datagrams.places());
  std::array<char, kHostNonceBytes> nonce{};
  random_bytes(nonce.size()).copy(nonce.data(), nonce.size());
  comm.broadcast(nonce.data(), nonce.size(), 0);
  std::string key = hmac_sha256(way.secret, std::string_view(nonce.data(), nonce.size()));
  return std::make_unique<HostReports>(std::move(datagrams), comm.rank(), std::move(hosts),
                                       std::move(places), std::move(key));
}

}  // namespace cuop::dist
