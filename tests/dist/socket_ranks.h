// Ranks joined by TCP that are threads of the test: all they share are the connections.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cuop/dist/comm/socket.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist::rank_test {

inline const std::string kSecret = "known to the ranks of these tests alone";

/// A port for a job's MASTER_PORT and the 19 above it, where its rank 0 listens: while this lives,
/// no other test of this machine has them. All take theirs from the same ranges (those of Python's
/// tests in tools/rank_ports.py) and listen at the first port of one as long as they use it.
class ReservedPorts {
 public:
  ReservedPorts();
  int first() const { return first_; }

 private:
  Socket held_;
  int first_ = 0;
};

inline SocketRank rank_at(int port, int rank, int ranks, double timeout = 20.0) {
  return {rank, ranks, "127.0.0.1", port, timeout, kSecret};
}

inline void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Looks every millisecond; false when it does not hold within 20 s.
template <class Holds>
bool comes_true(const Holds& holds) {
  const double deadline = steady_seconds() + 20.0;
  while (!holds()) {
    if (steady_seconds() > deadline) return false;
    pause(0.001);
  }
  return true;
}

/// The first error of a rank is rethrown.
void run_socket_ranks(int ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body);

/// So many bytes, within 20 s.
inline std::string read_exactly(Socket& socket, size_t bytes) {
  std::string text(bytes, '\0');
  socket.read_all(text.data(), static_cast<int64_t>(bytes), steady_seconds() + 20.0);
  return text;
}

inline void write_text(Socket& socket, const std::string& text) {
  socket.write_all(text.data(), static_cast<int64_t>(text.size()), steady_seconds() + 20.0);
}

/// Connected, or closed when nobody listens there.
Socket connect_to(int port, const std::string& address = "127.0.0.1");

struct LinkPair {
  Socket a, b;
};
LinkPair connected_pair();

}  // namespace cuop::dist::rank_test
