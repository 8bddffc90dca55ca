// TCP connections as byte streams that never block. The only file pair that knows sockets.
#pragma once

#include <cstdint>
#include <string>

namespace cuop::dist {

/// One connected (or listening) socket; closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close() noexcept;

  /// Bytes moved now, 0 when none can be; CommunicationError when the connection is lost.
  int64_t write_some(const void* data, int64_t bytes);
  int64_t read_some(void* data, int64_t bytes);
  /// All of it, waiting until `deadline` (seconds of the steady clock); CommunicationError after.
  void write_all(const void* data, int64_t bytes, double deadline);
  void read_all(void* data, int64_t bytes, double deadline);

 private:
  int descriptor_ = -1;
};

/// Seconds of the steady clock.
double steady_seconds();

/// Listens on all interfaces; port 0 takes a free one. CommunicationError when the port is taken.
Socket listen_on(int port);
int port_of(const Socket& listener);
/// The next connection, or a closed socket when none came until the deadline.
Socket accept_one(const Socket& listener, double deadline);
/// A closed socket when nobody listens there; CommunicationError when the host is unknown.
Socket connect_once(const std::string& host, int port);
/// The address of the other side, as numbers.
std::string peer_address(const Socket& socket);
/// Sleeps until one of the sockets can be read (or written, where asked), at most `seconds`.
struct Interest {
  int descriptor;
  bool wants_write;
};
void wait_for_any(const Interest* interests, size_t count, double seconds);

}  // namespace cuop::dist
