#include "cuop/dist/comm/socket_rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/job_secret.h"
#include "cuop/dist/comm/launch.h"
#include "cuop/dist/comm/socket_admission.h"

namespace cuop::dist {

namespace {

constexpr size_t kAddressBytes = 64;
/// The longest sleep: deadlines of visitors and of the user's patience are looked at between two.
constexpr double kLookSeconds = 0.05;

/// A line of the table that rank 0 gives to all when all have come.
struct Entry {
  int32_t port;
  char address[kAddressBytes];  // as rank 0 sees it
  char host[kHostBytes];
};

template <size_t Size>
void copy_text(char (&to)[Size], const std::string& text) {
  std::memset(to, 0, Size);
  std::memcpy(to, text.data(), std::min(text.size(), Size - 1));
}
template <size_t Size>
std::string text_of(const char (&from)[Size]) {
  return std::string(from, strnlen(from, Size));
}

std::vector<int> ranks_between(int begin, int end) {
  std::vector<int> ranks;
  for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
  return ranks;
}

/// One rank's way into the mesh.
class Rendezvous {
 public:
  Rendezvous(const SocketRank& rank, double timeout)
      : rank_(rank),
        deadline_(steady_seconds() + timeout),
        job_(
            make_job(rank.secret.empty() ? job_secret() : checked_secret("the secret", rank.secret),
                     cat(rank.address, ":", rank.port, ":", rank.size), rank.size)),
        self_{rank.rank, 0, host_name().substr(0, kHostBytes - 1)},
        table_(static_cast<size_t>(rank.size)) {
    mesh_.links.resize(static_cast<size_t>(rank.size));
  }

  SocketMesh run() {
    if (rank_.rank == 0) {
      meet_as_root();
    } else {
      meet_neighbours(meet_root());
    }
    for (const Entry& each : table_) mesh_.hosts.push_back(text_of(each.host));
    mesh_.key = hmac_sha256(job_.key, "heartbeat");
    return std::move(mesh_);
  }

 private:
  Entry& entry(int rank) { return table_[static_cast<size_t>(rank)]; }
  int64_t table_bytes() const { return static_cast<int64_t>(table_.size() * sizeof(Entry)); }

  std::string who() const { return cat("socket: rank ", rank_.rank, " of ", rank_.size); }

  /// Sleeps until something can be done, raises at the deadline or when the user asks for it.
  template <class Raise>
  void wait(const std::vector<Interest>& interests, const std::vector<Visit>& visits,
            const Raise& raise) {
    check_interrupt();
    const double now = steady_seconds();
    if (now > deadline_) raise();
    double wake = std::min(now + kLookSeconds, deadline_);
    for (const Visit& each : visits) wake = std::min(wake, each.next_time());
    wait_for_any(interests, std::max(0.0, wake - now) + 0.001);
  }

  [[noreturn]] void throw_missing(const std::vector<int>& awaited, int refused) {
    const std::string others =
        refused == 0
            ? ""
            : cat("; ", refused, " connections did not prove to be of this job: ", kSecretAdvice);
    throw CommunicationError(cat(who(), " waited for ", awaited.size() == 1 ? "rank " : "ranks ",
                                 join(awaited), ", which did not connect", where_, others),
                             awaited.size() == 1 ? awaited[0] : -1);
  }

  /// Listens at the address that was asked for: at all that a name stands for, but not at loopback
  /// ones beside others, which ranks elsewhere could not tell from their own.
  std::vector<Socket> listen_as_root() {
    std::vector<std::string> addresses = resolve(rank_.address, deadline_);
    std::stable_partition(addresses.begin(), addresses.end(),
                          [](const std::string& each) { return !is_loopback(each); });
    int last_error = 0;
    for (int offset = 1; offset <= kRendezvousPorts; ++offset) {
      std::vector<Socket> listeners;
      std::vector<std::string> places;
      bool is_taken = false;
      for (const std::string& address : addresses) {
        if (!listeners.empty() && is_loopback(address) && !is_loopback(places[0])) break;
        int error = 0;
        Socket listener = try_listen(address, rank_.port + offset, error);
        is_taken |= error == EADDRINUSE || error == EACCES;
        if (error != 0) last_error = error;
        if (!listener.is_open()) continue;
        places.push_back(address);
        listeners.push_back(std::move(listener));
      }
      if (is_taken || listeners.empty()) continue;
      where_ = cat(" at ", join(places), " port ", rank_.port + offset);
      return listeners;
    }
    throw CommunicationError(cat(who(), " cannot listen at '", rank_.address, "' (",
                                 join(addresses), "), ports ", rank_.port + 1, " to ",
                                 rank_.port + kRendezvousPorts, ": ", errno_text(last_error),
                                 "; MASTER_ADDR must name the host of rank 0"));
  }

  void meet_as_root() {
    Admission admission(job_, 0, listen_as_root());
    copy_text(entry(0).host, self_.host);
    const std::vector<int> others = ranks_between(1, rank_.size);
    admit_all(admission, others, {});
    for (int other : others) {
      mesh_.links[static_cast<size_t>(other)].write_all(table_.data(), table_bytes(), deadline_);
    }
  }

  /// Until all of `expected` have come and all visits are over. A rank that comes again has given
  /// up its first try.
  void admit_all(Admission& admission, const std::vector<int>& expected,
                 std::vector<Visit> visits) {
    std::vector<int> awaited = expected;
    const auto admit = [&](const Introduction& who, Socket link) {
      if (std::count(expected.begin(), expected.end(), who.rank) == 0) return;
      if (rank_.rank == 0) {
        entry(who.rank).port = who.port;
        copy_text(entry(who.rank).address, peer_address(link));
        copy_text(entry(who.rank).host, who.host);
      }
      std::erase(awaited, who.rank);
      mesh_.links[static_cast<size_t>(who.rank)] = std::move(link);
    };
    for (;;) {
      admission.advance(admit);
      std::erase_if(visits, [&](Visit& visit) {
        if (!visit.advance()) return false;
        mesh_.links[static_cast<size_t>(visit.wanted())] = visit.take_link();
        return true;
      });
      if (awaited.empty() && visits.empty()) return;
      std::vector<Interest> interests;
      admission.add_interests(interests);
      for (const Visit& each : visits) each.add_interests(interests);
      wait(interests, visits, [&] {
        if (visits.empty()) throw_missing(awaited, admission.refused());
        const Visit& visit = visits[0];
        throw CommunicationError(cat(who(), " cannot connect to rank ", visit.wanted(), " at ",
                                     visit.place().address, " port ", visit.place().port),
                                 visit.wanted());
      });
    }
  }

  std::vector<Visit> visits_of_root() {
    std::vector<Visit> visits;
    for (const std::string& address : resolve(rank_.address, deadline_)) {
      for (int offset = 1; offset <= kRendezvousPorts; ++offset) {
        visits.emplace_back(job_, self_, 0, Place{address, rank_.port + offset}, true);
      }
    }
    return visits;
  }

  /// Visits all places where rank 0 may listen until it lets this rank in; then it sends the table
  /// when all have come. Returns this rank's listener.
  Socket meet_root() {
    std::vector<Visit> visits = visits_of_root();
    auto found = visits.end();
    for (;;) {
      found =
          std::find_if(visits.begin(), visits.end(), [](Visit& each) { return each.advance(); });
      if (found != visits.end()) break;
      std::vector<Interest> interests;
      for (const Visit& each : visits) each.add_interests(interests);
      wait(interests, visits, [&] { throw_no_root(visits); });
    }
    Socket link = found->take_link();
    Socket listener = found->take_listener();
    visits.clear();
    try {
      link.read_all(table_.data(), table_bytes(), deadline_);
    } catch (const CommunicationError& error) {
      throw CommunicationError(
          cat(who(), " waited with rank 0 for the other ranks: ", error.what()), 0);
    }
    mesh_.links[0] = std::move(link);
    return listener;
  }

  [[noreturn]] void throw_no_root(const std::vector<Visit>& visits) {
    const bool is_secret = std::any_of(visits.begin(), visits.end(),
                                       [](const Visit& each) { return each.was_refused(); });
    throw CommunicationError(
        cat(who(), " finds no rank 0 at ", rank_.address, ", ports ", rank_.port + 1, " to ",
            rank_.port + kRendezvousPorts,
            is_secret
                ? cat("; a rank there is of another job or has another secret: ", kSecretAdvice)
                : ""),
        0);
  }

  void meet_neighbours(Socket listener) {
    std::vector<Visit> visits;
    for (int lower = 1; lower < rank_.rank; ++lower) {
      const Entry& other = entry(lower);
      if (other.port < 1 || other.port > 65535) {
        throw CommunicationError(
            cat(who(), " was told that rank ", lower, " listens at port ", other.port), 0);
      }
      visits.emplace_back(job_, self_, lower, Place{text_of(other.address), other.port}, false);
    }
    std::vector<Socket> listeners;
    listeners.push_back(std::move(listener));
    Admission admission(job_, rank_.rank, std::move(listeners));
    admit_all(admission, ranks_between(rank_.rank + 1, rank_.size), std::move(visits));
  }

  static constexpr const char* kSecretAdvice =
      "hosts that share no home need the same CUOP_JOB_SECRET on all ranks";

  const SocketRank& rank_;
  double deadline_;
  Job job_;
  Introduction self_;
  std::vector<Entry> table_;
  SocketMesh mesh_;
  std::string where_;
};

}  // namespace

SocketMesh connect_mesh(const SocketRank& rank, double timeout) {
  if (rank.size > kMostSocketRanks) {
    throw CommunicationError(
        cat("socket: ", rank.size, " ranks, at most ", kMostSocketRanks, " can be joined by TCP"));
  }
  if (rank.size == 1) return {std::vector<Socket>(1), {host_name()}, ""};
  return Rendezvous(rank, timeout).run();
}

}  // namespace cuop::dist
