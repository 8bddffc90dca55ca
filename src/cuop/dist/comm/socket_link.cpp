#include "cuop/dist/comm/socket_link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

[[noreturn]] void throw_errno(const std::string& what) {
  throw CommunicationError(cat("socket: ", what, ": ", std::strerror(errno)));
}

void set_nonblocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  // Messages are written whole; waiting for more to send with them only delays them.
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool poll_one(int descriptor, short events, double seconds) {
  pollfd entry{descriptor, events, 0};
  return poll(&entry, 1, static_cast<int>(std::clamp(seconds, 0.0, 1e6) * 1e3)) > 0;
}

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressDeleter>;

AddressList resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) {
    throw CommunicationError(cat("socket: the host '", host, "' is unknown: ", gai_strerror(code)));
  }
  return AddressList(list);
}

/// A host that does not answer at all is as good as one where nobody listens.
constexpr double kConnectSeconds = 5.0;

Socket try_connect(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return {};
  set_nonblocking(socket.descriptor());
  if (::connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  if (!poll_one(socket.descriptor(), POLLOUT, kConnectSeconds)) return {};
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::move(socket) : Socket();
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

int64_t Socket::write_some(const void* data, int64_t bytes) {
  const ssize_t moved = ::send(descriptor_, data, static_cast<size_t>(bytes), MSG_NOSIGNAL);
  if (moved >= 0) return moved;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw_errno("the connection was lost");
}

int64_t Socket::read_some(void* data, int64_t bytes) {
  if (bytes == 0) return 0;
  const ssize_t moved = ::recv(descriptor_, data, static_cast<size_t>(bytes), 0);
  if (moved > 0) return moved;
  if (moved == 0) throw CommunicationError("socket: the other side has closed the connection");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw_errno("the connection was lost");
}

void Socket::write_all(const void* data, int64_t bytes, double deadline) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const int64_t moved = write_some(next, bytes);
    next += moved;
    bytes -= moved;
    if (bytes == 0 || moved > 0) continue;
    if (!poll_one(descriptor_, POLLOUT, deadline - steady_seconds())) {
      throw CommunicationError("socket: the other side did not read in time");
    }
  }
}

void Socket::read_all(void* data, int64_t bytes, double deadline) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const int64_t moved = read_some(next, bytes);
    next += moved;
    bytes -= moved;
    if (bytes == 0 || moved > 0) continue;
    if (!poll_one(descriptor_, POLLIN, deadline - steady_seconds())) {
      throw CommunicationError("socket: the other side did not write in time");
    }
  }
}

Socket listen_on(int port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_ipv6 = socket.is_open();
  if (!has_ipv6) socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) throw_errno("no socket can be made");
  const int on = 1;
  const int off = 0;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int code = 0;
  if (has_ipv6) {
    setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    code = bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<uint16_t>(port));
    code = bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  if (code != 0) throw_errno(cat("port ", port, " cannot be listened on"));
  if (listen(socket.descriptor(), SOMAXCONN) != 0) throw_errno("listening failed");
  set_nonblocking(socket.descriptor());
  return socket;
}

int port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  const uint16_t port = address.ss_family == AF_INET6
                            ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

Socket accept_one(const Socket& listener, double deadline) {
  for (;;) {
    const int descriptor = accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor >= 0) {
      set_nonblocking(descriptor);
      return Socket(descriptor);
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED) {
      throw_errno("accepting failed");
    }
    const double left = deadline - steady_seconds();
    if (left <= 0.0) return {};
    poll_one(listener.descriptor(), POLLIN, std::min(left, 0.1));
  }
}

Socket connect_once(const std::string& host, int port) {
  const AddressList list = resolve(host, port);
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    Socket socket = try_connect(*each);
    if (socket.is_open()) return socket;
  }
  return {};
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char host[NI_MAXHOST] = "";
  if (getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    throw_errno("the address of the other side is unknown");
  }
  return host;
}

void wait_for_any(const Interest* interests, size_t count, double seconds) {
  std::vector<pollfd> entries;
  for (size_t i = 0; i < count; ++i) {
    const short events = static_cast<short>(interests[i].wants_write ? POLLIN | POLLOUT : POLLIN);
    entries.push_back({interests[i].descriptor, events, 0});
  }
  poll(entries.data(), static_cast<nfds_t>(entries.size()), static_cast<int>(seconds * 1e3));
}

}  // namespace cuop::dist
