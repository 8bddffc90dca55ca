#include "cuop/dist/comm/socket_link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

namespace {

/// Between two looks whether the user wants the wait to end.
constexpr double kPollSeconds = 0.1;

[[noreturn]] void throw_errno(const std::string& what) {
  throw CommunicationError(cat("socket: ", what, ": ", errno_text()));
}

void set_nonblocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  // Messages are written whole; waiting for more to send with them only delays them.
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int milliseconds(double seconds) { return static_cast<int>(std::clamp(seconds, 0.0, 1e6) * 1e3); }

/// False at the deadline and not before, whatever signals come.
bool wait_until_ready(int descriptor, short events, double deadline) {
  for (;;) {
    check_interrupt();
    const double left = deadline - steady_seconds();
    pollfd entry{descriptor, events, 0};
    const int count = poll(&entry, 1, milliseconds(std::min(left, kPollSeconds)) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) throw_errno("waiting failed");
    if (left <= 0.0) return false;
  }
}

/// `move(done)` moves what it can of the bytes after the first `done`; CommunicationError `late`.
template <class Move>
void move_all(int descriptor, short events, int64_t bytes, double deadline, const char* late,
              const Move& move) {
  for (int64_t done = 0; done < bytes;) {
    const int64_t moved = move(done);
    done += moved;
    if (done == bytes || moved > 0) continue;
    if (!wait_until_ready(descriptor, events, deadline)) throw CommunicationError(late);
  }
}

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressDeleter>;

/// Null and the reason when there is none.
AddressList look_up(const std::string& host, int port, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const std::string service = std::to_string(port);
  int code = 0;
  do {
    code = getaddrinfo(host.c_str(), service.c_str(), &hints, &list);
  } while (code == EAI_SYSTEM && errno == EINTR);
  if (code == 0) return AddressList(list);
  problem = code == EAI_SYSTEM ? errno_text() : gai_strerror(code);
  return nullptr;
}

AddressList numeric(const std::string& address, int port) {
  std::string problem;
  AddressList list = look_up(address, port, AI_NUMERICHOST, problem);
  if (!list) {
    throw CommunicationError(cat("socket: '", address, "' is no address of numbers: ", problem));
  }
  return list;
}

std::string number_of(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(address, length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host;
}

/// What a name server has answered, or has not yet.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_there = false;
  std::vector<std::string> addresses;
  std::string problem;
};

void ask(const std::string& host, int flags, Answer& answer) {
  std::string problem;
  const AddressList list = look_up(host, 0, flags, problem);
  const std::lock_guard lock(answer.mutex);
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const std::string address = number_of(each->ai_addr, each->ai_addrlen);
    if (std::count(answer.addresses.begin(), answer.addresses.end(), address) == 0) {
      answer.addresses.push_back(address);
    }
  }
  answer.problem = problem;
  answer.is_there = true;
  answer.changed.notify_all();
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

/// Of a connection that failed with `errno`. One that its other side closed with bytes in it that
/// it had not read is reset.
[[noreturn]] void throw_lost() {
  if (errno == ECONNRESET || errno == EPIPE) {
    throw CommunicationError("socket: the other side has closed the connection");
  }
  throw_errno("the connection was lost");
}

}  // namespace

int64_t Socket::write_some(const void* data, int64_t bytes, bool more) {
  const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  const ssize_t moved = ::send(descriptor(), data, static_cast<size_t>(bytes), flags);
  if (moved >= 0) return moved;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw_lost();
}

int64_t Socket::read_some(void* data, int64_t bytes) {
  if (bytes == 0) return 0;
  const ssize_t moved = ::recv(descriptor(), data, static_cast<size_t>(bytes), 0);
  if (moved > 0) return moved;
  if (moved == 0) errno = ECONNRESET;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw_lost();
}

void Socket::write_all(const void* data, int64_t bytes, double deadline) {
  move_all(descriptor(), POLLOUT, bytes, deadline, "socket: the other side did not read in time",
           [&](int64_t done) { return write_some(at(data, done), bytes - done); });
}

void Socket::read_all(void* data, int64_t bytes, double deadline) {
  move_all(descriptor(), POLLIN, bytes, deadline, "socket: the other side did not write in time",
           [&](int64_t done) { return read_some(at(data, done), bytes - done); });
}

Alarm::Alarm() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.is_open()) throw_errno("no event can be made");
}

void Alarm::ring() noexcept {
  const uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void Alarm::silence() noexcept {
  uint64_t count = 0;
  while (::read(event_.get(), &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

std::vector<std::string> resolve(const std::string& host, double deadline) {
  const auto answer = std::make_shared<Answer>();
  ask(host, AI_NUMERICHOST, *answer);  // asks nobody
  if (!answer->addresses.empty()) return answer->addresses;
  answer->is_there = false;
  // A name server may take half a minute, and nothing ends that call: it is left to itself.
  std::thread([answer, host] { ask(host, 0, *answer); }).detach();
  std::unique_lock lock(answer->mutex);
  while (!answer->is_there && steady_seconds() < deadline) {
    answer->changed.wait_for(lock, std::chrono::duration<double>(kPollSeconds));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  if (!answer->addresses.empty()) return answer->addresses;
  throw CommunicationError(
      cat("socket: the host '", host, "' is unknown: ",
          answer->is_there ? answer->problem : std::string("no name server has answered in time")));
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

Socket try_listen(const std::string& address, int port, int& error) {
  const AddressList place = numeric(address, port);
  Socket socket(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  error = 0;
  if (socket.is_open()) {
    setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Else the address :: would stand for those of IPv4 too.
    if (place->ai_family == AF_INET6) {
      setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (bind(socket.descriptor(), place->ai_addr, place->ai_addrlen) == 0 &&
        listen(socket.descriptor(), SOMAXCONN) == 0) {
      set_nonblocking(socket.descriptor());
      return socket;
    }
  }
  error = errno;
  return {};
}

Socket listen_at(const std::string& address, int port) {
  int error = 0;
  Socket listener = try_listen(address, port, error);
  if (listener.is_open()) return listener;
  throw CommunicationError(
      cat("socket: ", address, " port ", port, " cannot be listened on: ", errno_text(error)));
}

Socket accept_one(const Socket& listener, bool& is_exhausted) {
  const int descriptor = accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  is_exhausted = false;
  if (descriptor >= 0) {
    set_nonblocking(descriptor);
    return Socket(descriptor);
  }
  is_exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  // All others are a signal, nobody, or a visitor's own trouble (accept(2)).
  if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) throw_errno("accepting failed");
  return {};
}

Socket start_connect(const std::string& address, int port) {
  const AddressList place = numeric(address, port);
  Socket socket(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return {};
  set_nonblocking(socket.descriptor());
  if (::connect(socket.descriptor(), place->ai_addr, place->ai_addrlen) == 0 ||
      errno == EINPROGRESS || errno == EINTR) {
    return socket;
  }
  return {};
}

ConnectState connect_state(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
    return ConnectState::kRefused;
  }
  sockaddr_storage address{};
  length = sizeof(address);
  if (getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    return ConnectState::kConnected;
  }
  return errno == ENOTCONN ? ConnectState::kPending : ConnectState::kRefused;
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  const uint16_t port = address.ss_family == AF_INET6
                            ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

namespace {

/// `ask` is getsockname or getpeername.
template <class Ask>
std::string address_by(Ask ask, const Socket& socket, const char* unknown) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (ask(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw_errno(unknown);
  }
  return number_of(reinterpret_cast<sockaddr*>(&address), length);
}

}  // namespace

std::string local_address(const Socket& socket) {
  return address_by(getsockname, socket, "the address of this side is unknown");
}

std::string peer_address(const Socket& socket) {
  return address_by(getpeername, socket, "the address of the other side is unknown");
}

void wait_for_any(const std::vector<Interest>& interests, double seconds) {
  std::vector<pollfd> entries;
  for (const Interest& each : interests) {
    const short events = static_cast<short>(each.wants_write ? POLLIN | POLLOUT : POLLIN);
    entries.push_back({each.descriptor, events, 0});
  }
  // A signal ends the sleep early, which all callers take for nothing has happened yet.
  poll(entries.data(), static_cast<nfds_t>(entries.size()), milliseconds(seconds));
}

}  // namespace cuop::dist
