#include "cuop/dist/comm/socket_rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

/// What two ends say first: that they are cuOP, of the same job, who they are and where they
/// listen.
struct Greeting {
  char magic[8];
  uint64_t job;
  int32_t rank;
  int32_t port;
  char address[64];  // filled in by rank 0: what it sees
  char host[64];
};
constexpr char kMagic[8] = {'c', 'u', 'O', 'P', 'r', 'a', 'n', 'k'};
/// A stranger on one of the ports may never say a word: who listens waits this long for a greeting,
/// who connects longer for the answer, as several strangers may be ahead of it.
constexpr double kGreetingSeconds = 1.0;
constexpr double kAnswerSeconds = 10.0;

uint64_t job_number(const SocketRank& rank) {
  return std::hash<std::string>{}(cat(rank.address, ":", rank.port, ":", rank.size));
}

template <size_t Size>
void copy_text(char (&to)[Size], const std::string& text) {
  std::memset(to, 0, Size);
  std::memcpy(to, text.data(), std::min(text.size(), Size - 1));
}

Greeting greeting_of(const SocketRank& rank, int port) {
  Greeting greeting{};
  std::memcpy(greeting.magic, kMagic, sizeof(kMagic));
  greeting.job = job_number(rank);
  greeting.rank = rank.rank;
  greeting.port = port;
  char host[64] = "";
  gethostname(host, sizeof(host) - 1);
  copy_text(greeting.host, host);
  return greeting;
}

bool is_of_job(const Greeting& greeting, const SocketRank& rank) {
  return std::memcmp(greeting.magic, kMagic, sizeof(kMagic)) == 0 &&
         greeting.job == job_number(rank) && greeting.rank >= 0 && greeting.rank < rank.size;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

[[noreturn]] void throw_missing(const SocketRank& rank, const std::vector<int>& awaited) {
  throw CommunicationError(
      cat("socket: rank ", rank.rank, " of ", rank.size, " waited for ",
          awaited.size() == 1 ? "rank " : "ranks ", join(awaited), ", which did not connect"),
      awaited.size() == 1 ? awaited[0] : -1);
}

/// Accepts until all of `expected` have greeted, answers each with its own greeting; strangers are
/// sent away. A rank that greets again has given up its first try.
void accept_ranks(const Socket& listener, const SocketRank& rank, const std::vector<int>& expected,
                  double deadline, SocketMesh& mesh, std::vector<Greeting>& table) {
  const Greeting own = greeting_of(rank, port_of(listener));
  std::vector<int> awaited = expected;
  while (!awaited.empty()) {
    Socket link = accept_one(listener, deadline);
    if (!link.is_open()) throw_missing(rank, awaited);
    Greeting greeting{};
    try {
      link.read_all(&greeting, sizeof(greeting),
                    std::min(deadline, steady_seconds() + kGreetingSeconds));
      if (!is_of_job(greeting, rank) ||
          std::count(expected.begin(), expected.end(), greeting.rank) == 0) {
        continue;
      }
      link.write_all(&own, sizeof(own), deadline);
      copy_text(greeting.address, peer_address(link));
    } catch (const CommunicationError&) {
      continue;  // gone again
    }
    std::erase(awaited, greeting.rank);
    table[static_cast<size_t>(greeting.rank)] = greeting;
    mesh.links[static_cast<size_t>(greeting.rank)] = std::move(link);
  }
}

/// Greets `other` on a new connection; CommunicationError when somebody else answers.
void greet(Socket& link, const Greeting& own, const SocketRank& rank, int other, double deadline) {
  link.write_all(&own, sizeof(own), deadline);
  Greeting answer{};
  link.read_all(&answer, sizeof(answer), deadline);
  if (is_of_job(answer, rank) && answer.rank == other) return;
  throw CommunicationError("socket: somebody else listens there");
}

std::vector<int> ranks_between(int begin, int end) {
  std::vector<int> ranks;
  for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
  return ranks;
}

Socket listen_above(int port) {
  for (int offset = 1;; ++offset) {
    try {
      return listen_on(port + offset);
    } catch (const CommunicationError&) {
      if (offset == kRendezvousPorts) throw;
    }
  }
}

std::vector<Greeting> meet_as_root(const SocketRank& rank, double deadline, SocketMesh& mesh) {
  std::vector<Greeting> table(static_cast<size_t>(rank.size));
  const Socket listener = listen_above(rank.port);
  table[0] = greeting_of(rank, port_of(listener));
  const auto others = ranks_between(1, rank.size);
  accept_ranks(listener, rank, others, deadline, mesh, table);
  for (int other : others) {
    mesh.links[static_cast<size_t>(other)].write_all(
        table.data(), static_cast<int64_t>(table.size() * sizeof(Greeting)), deadline);
  }
  return table;
}

/// Greets whoever listens above the port until rank 0 answers; then it sends the table when all
/// have come.
std::vector<Greeting> meet_root(const SocketRank& rank, const Greeting& own, double deadline,
                                SocketMesh& mesh) {
  std::vector<Greeting> table(static_cast<size_t>(rank.size));
  for (int offset = 1;; offset = offset % kRendezvousPorts + 1) {
    Socket link;
    try {
      link = connect_once(rank.address, rank.port + offset);
      if (link.is_open()) {
        greet(link, own, rank, 0, std::min(deadline, steady_seconds() + kAnswerSeconds));
      }
    } catch (const CommunicationError&) {
      link.close();  // a stranger
    }
    if (link.is_open()) {
      link.read_all(table.data(), static_cast<int64_t>(table.size() * sizeof(Greeting)), deadline);
      mesh.links[0] = std::move(link);
      return table;
    }
    if (steady_seconds() > deadline) {
      throw CommunicationError(
          cat("socket: rank ", rank.rank, " of ", rank.size, " finds no rank 0 at ", rank.address,
              ", ports ", rank.port + 1, " to ", rank.port + kRendezvousPorts),
          0);
    }
    if (offset == kRendezvousPorts) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

SocketMesh connect_mesh(const SocketRank& rank, double timeout) {
  const double deadline = steady_seconds() + timeout;
  SocketMesh mesh;
  mesh.links.resize(static_cast<size_t>(rank.size));
  std::vector<Greeting> table;
  if (rank.rank == 0) {
    table = meet_as_root(rank, deadline, mesh);
  } else {
    const Socket listener = listen_on(0);
    const Greeting own = greeting_of(rank, port_of(listener));
    table = meet_root(rank, own, deadline, mesh);
    for (int lower = 1; lower < rank.rank; ++lower) {
      const Greeting& other = table[static_cast<size_t>(lower)];
      // Rank 0 sees its neighbours on its own host at the loopback address; from elsewhere they
      // are where rank 0 is.
      const std::string address = is_loopback(other.address) ? rank.address : other.address;
      Socket link = connect_once(address, other.port);
      if (!link.is_open()) {
        throw CommunicationError(
            cat("socket: rank ", rank.rank, " of ", rank.size, " cannot connect to rank ", lower,
                " at ", address, ":", other.port),
            lower);
      }
      greet(link, own, rank, lower, deadline);
      mesh.links[static_cast<size_t>(lower)] = std::move(link);
    }
    std::vector<Greeting> seen(table.size());
    accept_ranks(listener, rank, ranks_between(rank.rank + 1, rank.size), deadline, mesh, seen);
  }
  for (const Greeting& each : table) mesh.hosts.emplace_back(each.host);
  return mesh;
}

}  // namespace cuop::dist
