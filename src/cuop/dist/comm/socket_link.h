// TCP connections as byte streams that never block. The only file pair that knows sockets. A signal
// that is handled while something waits here makes no difference to the wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuop/core/descriptor.h"

namespace cuop::dist {

/// One connected (or listening) socket; closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  bool is_open() const { return descriptor_.is_open(); }
  int descriptor() const { return descriptor_.get(); }
  void close() noexcept { descriptor_.close(); }

  /// Bytes moved now, 0 when none can be; CommunicationError when the connection is lost. With
  /// `more`, the system may wait for the next bytes before it sends these.
  int64_t write_some(const void* data, int64_t bytes, bool more = false);
  int64_t read_some(void* data, int64_t bytes);
  /// All of it, waiting until `deadline` (seconds of the steady clock); CommunicationError after.
  /// The user may interrupt the wait (interrupt.h).
  void write_all(const void* data, int64_t bytes, double deadline);
  void read_all(void* data, int64_t bytes, double deadline);

 private:
  Descriptor descriptor_;
};

/// Ends the sleep of a thread in wait_for_any.
class Alarm {
 public:
  Alarm();
  int descriptor() const { return event_.get(); }
  void ring() noexcept;
  void silence() noexcept;

 private:
  Descriptor event_;
};

/// Seconds of the steady clock.
double steady_seconds();

/// The host's addresses as numbers ("10.0.0.5", "::1"), in the order in which they are to be tried.
/// CommunicationError when it has none by the deadline. The user may interrupt the wait.
std::vector<std::string> resolve(const std::string& host, double deadline);
bool is_loopback(const std::string& address);

/// Listens at this one address of this host, a number; port 0 takes a free one. A closed socket and
/// `error`, an errno, when that is not possible.
Socket try_listen(const std::string& address, int port, int& error);
/// The same; CommunicationError when it is not possible.
Socket listen_at(const std::string& address, int port);
/// The next connection that waits, or a closed socket; never waits. `is_exhausted` when the process
/// or the system has no room for another one: close some.
Socket accept_one(const Socket& listener, bool& is_exhausted);

/// Begins to connect to an address, a number; a closed socket when it is refused at once.
Socket start_connect(const std::string& address, int port);
enum class ConnectState : uint8_t { kPending, kConnected, kRefused };
ConnectState connect_state(const Socket& socket);

/// The port and the address of this side, the address of the other one, as numbers.
int port_of(const Socket& socket);
std::string local_address(const Socket& socket);
std::string peer_address(const Socket& socket);

/// Sleeps until one of the sockets can be read (or written, where asked), at most `seconds`.
struct Interest {
  int descriptor;
  bool wants_write;
  bool operator==(const Interest&) const = default;
};
void wait_for_any(const std::vector<Interest>& interests, double seconds);

}  // namespace cuop::dist
