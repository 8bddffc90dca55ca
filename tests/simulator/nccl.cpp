// An NCCL for the simulated GPU: sends and receives of bytes between processes of this host, over
// Unix sockets, as work of streams. It is one that does not wait: a call that was made is under way
// until the question for its progress has been answered with that once, and calls made meanwhile
// are refused. As with NCCL, copies whose peer never comes hold their stream until they are given
// up. SIM_NCCL_FAULT=1 never meets, 2 refuses groups, 3 brings other bytes than were sent.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/simulator/library_work.h"
#include "tests/simulator/settings.h"

namespace {

using cuop::backend::cuda::ContextHandle;
using cuop::backend::cuda::StreamHandle;
using cuop::simulator::Region;

enum Status : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};
enum class Fault : int64_t { kNone, kNeverMeets, kRefuses, kSpoils };
Fault fault() {
  static const auto read = cuop::simulator::number_in_environment("SIM_NCCL_FAULT", 0);
  return static_cast<Fault>(read);
}

struct Id {
  std::array<char, 128> bytes;
};

struct Configuration {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

struct Piece {
  bool is_sent = false;
  char* data = nullptr;
  size_t bytes = 0;
};

/// A connection to another rank, and what goes over it in order.
struct Peer {
  int socket = -1;
  std::deque<Piece> sends, receives;
  size_t sent = 0, received = 0;  ///< of the first ones, their lengths included
};

/// Lives as long as the group or work of it.
struct Group {
  int rank, size;
  std::string name;
  ContextHandle context;
  std::vector<Peer> peers;
  std::atomic<int> met = kInProgress;
  std::atomic<int> failure = kSuccess;
  std::atomic<bool> is_given_up = false;
  std::atomic<bool> is_asked_for = false;  ///< whether the call before is through
  int listener = -1;

  ~Group() {
    for (const Peer& peer : peers) {
      if (peer.socket >= 0) close(peer.socket);
    }
    if (listener >= 0) close(listener);
  }
  bool is_idle() const { return met == kSuccess && is_asked_for; }
};

/// What a program holds.
struct Handle {
  std::shared_ptr<Group> group;
  std::thread meeting;
};

struct Posted {
  std::shared_ptr<Group> group;
  StreamHandle stream;
  int peer;
  Piece piece;
};
thread_local int open_groups = 0;
thread_local std::vector<Posted> posted;

sockaddr_un address_of(const Group& group, int rank, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int written = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s-%d",
                                    group.name.c_str(), rank);
  *length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(written));
  return address;
}

bool read_exactly(const Group& group, int socket, void* to, size_t bytes) {
  for (size_t done = 0; done < bytes && !group.is_given_up;) {
    const ssize_t count = read(socket, static_cast<char*>(to) + done, bytes - done);
    if (count > 0) done += static_cast<size_t>(count);
    if (count == 0) return false;
    if (count < 0) usleep(200);
  }
  return !group.is_given_up;
}

void keep(Group& group, int rank, int socket) {
  fcntl(socket, F_SETFL, O_NONBLOCK);
  group.peers[static_cast<size_t>(rank)].socket = socket;
}

/// Each rank connects to those before it and is reached by those behind it.
void meet(Group& group) {
  while (fault() == Fault::kNeverMeets && !group.is_given_up) usleep(1000);
  for (int rank = 0; rank < group.rank; ++rank) {
    socklen_t length = 0;
    const sockaddr_un address = address_of(group, rank, &length);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (!group.is_given_up &&
           connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      usleep(500);
    }
    const auto own = static_cast<int32_t>(group.rank);
    if (group.is_given_up || write(made, &own, sizeof own) != sizeof own)
      group.failure = kRemoteError;
    keep(group, rank, made);
  }
  for (int rank = group.rank + 1; rank < group.size && !group.is_given_up;) {
    const int made = accept4(group.listener, nullptr, nullptr, SOCK_CLOEXEC);
    int32_t theirs = -1;
    if (made < 0) {
      usleep(500);
      continue;
    }
    const bool is_named = read_exactly(group, made, &theirs, sizeof theirs);
    if (!is_named || theirs <= group.rank || theirs >= group.size) {
      close(made);
      continue;
    }
    keep(group, theirs, made);
    ++rank;
  }
  if (!group.is_given_up) group.met = group.failure == kSuccess ? kSuccess : group.failure.load();
}

/// Moves some of what is first in the row: its length, then its bytes. Whether anything moved.
bool advance(Group& group, Peer& peer, bool is_sent) {
  std::deque<Piece>& row = is_sent ? peer.sends : peer.receives;
  size_t& done = is_sent ? peer.sent : peer.received;
  if (row.empty()) return false;
  Piece& piece = row.front();
  uint64_t length = piece.bytes;
  const bool is_head = done < sizeof length;
  char* const at =
      is_head ? reinterpret_cast<char*>(&length) + done : piece.data + (done - sizeof length);
  const size_t left = (is_head ? sizeof length : sizeof length + piece.bytes) - done;
  const ssize_t count =
      is_sent ? send(peer.socket, at, left, MSG_NOSIGNAL) : read(peer.socket, at, left);
  if (count <= 0) return false;  // not now, or never: a peer that is gone is waited for
  done += static_cast<size_t>(count);
  if (is_head && !is_sent && done == sizeof length && length != piece.bytes) {
    std::fprintf(stderr, "simulated NCCL: %zu bytes are received where %zu were sent\n",
                 piece.bytes, static_cast<size_t>(length));
    group.failure = kInvalidUsage;
  }
  if (done < sizeof length + piece.bytes) return true;
  if (!is_sent && fault() == Fault::kSpoils && piece.bytes > 0) piece.data[piece.bytes / 2] ^= 1;
  row.pop_front();
  done = 0;
  return true;
}

/// The work of a stream. Pieces that are begun are told with their whole length; the length itself
/// is read in one go, as sockets of a host bring it.
void run(Group& group, const std::vector<Posted>& pieces) {
  for (const Posted& each : pieces) {
    Peer& peer = group.peers[static_cast<size_t>(each.peer)];
    (each.piece.is_sent ? peer.sends : peer.receives).push_back(each.piece);
  }
  const auto is_left = [](const Peer& peer) {
    return !peer.sends.empty() || !peer.receives.empty();
  };
  while (!group.is_given_up && group.failure == kSuccess &&
         std::ranges::any_of(group.peers, is_left)) {
    bool is_moving = false;
    for (Peer& peer : group.peers) {
      for (const bool is_sent : {true, false}) is_moving |= advance(group, peer, is_sent);
    }
    if (!is_moving) usleep(50);
  }
}

int post(StreamHandle stream, int peer, Handle* handle, const Piece& piece, int type) {
  if (handle == nullptr || piece.data == nullptr || type != 1) return kInvalidArgument;
  const Group& group = *handle->group;
  if (peer < 0 || peer >= group.size || peer == group.rank) return kInvalidArgument;
  if (open_groups == 0) return kInvalidUsage;  // one copy alone would wait for the other rank's
  if (!group.is_idle()) return kInvalidUsage;
  posted.push_back({handle->group, stream, peer, piece});
  return kSuccess;
}

}  // namespace

CUOP_SIMULATOR_ENTRY int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY const char* ncclGetErrorString(int status) {
  return status == kSuccess           ? "no error"
         : status == kSystemError     ? "unhandled system error"
         : status == kInvalidArgument ? "invalid argument"
         : status == kInvalidUsage    ? "invalid usage"
         : status == kRemoteError     ? "remote process exited or there was a network error"
         : status == kInProgress      ? "NCCL operation in progress"
                                      : "unhandled cuda error";
}
CUOP_SIMULATOR_ENTRY int ncclGetUniqueId(Id* id) {
  std::random_device random;
  for (char& byte : id->bytes) byte = static_cast<char>(random());
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int ncclCommInitRankConfig(Handle** made, int size, Id id, int rank,
                                                Configuration* configuration) {
  const bool is_sound = configuration != nullptr && configuration->magic == 0xcafebeef &&
                        configuration->size >= sizeof(Configuration) &&
                        configuration->version >= 21400 && configuration->blocking == 0;
  if (!is_sound || rank < 0 || rank >= size) return kInvalidArgument;
  if (fault() == Fault::kRefuses) return kSystemError;
  auto group = std::make_shared<Group>();
  group->context = cuop::simulator::library_context();
  if (group->context == nullptr) return kUnhandledCudaError;
  group->rank = rank;
  group->size = size;
  group->peers.resize(static_cast<size_t>(size));
  group->name = "cuop-simulated-nccl-";
  for (size_t i = 0; i < 16; ++i) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(id.bytes[i]));
    group->name += digits.data();
  }
  socklen_t length = 0;
  const sockaddr_un address = address_of(*group, rank, &length);
  group->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // A rank that stands twice in a group is found by its place.
  if (bind(group->listener, reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return kSystemError;
  fcntl(group->listener, F_SETFL, O_NONBLOCK);
  if (listen(group->listener, size) != 0) return kSystemError;
  auto* const handle = new Handle{group, {}};
  handle->meeting = std::thread([group] { meet(*group); });
  *made = handle;
  return kInProgress;
}
CUOP_SIMULATOR_ENTRY int ncclCommGetAsyncError(Handle* handle, int* status) {
  Group& group = *handle->group;
  *status = group.failure != kSuccess ? group.failure.load() : group.met.load();
  if (*status == kSuccess && !group.is_asked_for.exchange(true)) *status = kInProgress;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int ncclCommAbort(Handle* handle) {
  handle->group->is_given_up = true;
  handle->meeting.join();
  delete handle;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int ncclSend(const void* data, size_t count, int type, int peer,
                                  Handle* handle, StreamHandle stream) {
  auto* const bytes = static_cast<char*>(const_cast<void*>(data));
  return post(stream, peer, handle, {true, bytes, count}, type);
}
CUOP_SIMULATOR_ENTRY int ncclRecv(void* data, size_t count, int type, int peer, Handle* handle,
                                  StreamHandle stream) {
  return post(stream, peer, handle, {false, static_cast<char*>(data), count}, type);
}
CUOP_SIMULATOR_ENTRY int ncclGroupStart() {
  ++open_groups;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int ncclGroupEnd() {
  if (open_groups == 0) return kInvalidUsage;
  if (--open_groups > 0) return kSuccess;
  std::vector<Posted> pieces;
  pieces.swap(posted);
  if (pieces.empty()) return kSuccess;
  const std::shared_ptr<Group> group = pieces.front().group;
  std::vector<Region> regions;
  for (const Posted& each : pieces) {
    if (each.group != group || each.stream != pieces.front().stream) return kInvalidUsage;
    regions.push_back({each.piece.data, each.piece.bytes});
  }
  if (group->context != cuop::simulator::library_context()) return kInvalidUsage;
  group->is_asked_for = false;
  const auto result = cuop::simulator::start_library_work(pieces.front().stream, std::move(regions),
                                                          [group, pieces] { run(*group, pieces); });
  return result == cuop::backend::cuda::Result::kSuccess ? kInProgress : kUnhandledCudaError;
}
