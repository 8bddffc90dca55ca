// Ranks joined by TCP that are threads of the test: all they share are the connections.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuop/dist/comm/socket.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist::test {

inline const std::string kSecret = "known to the ranks of these tests alone";

/// A port with free ones above it; a new range each time, and another one in each test process.
inline int new_port() {
  static std::atomic<int> next = 21000 + static_cast<int>(getpid() % 500) * 60;
  return next += 20;
}

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
inline void run_socket_ranks(int ranks,
                             const std::function<void(const std::shared_ptr<Communicator>&)>& body,
                             int port = new_port()) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::shared_ptr<Communicator> comm;
      try {
        comm = make_socket_communicator(rank_at(port, rank, ranks));
        body(comm);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        if (comm) comm->abort(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

/// Connected, or closed when nobody listens there.
inline Socket connect_to(int port, const std::string& address = "127.0.0.1") {
  Socket socket = start_connect(address, port);
  if (!socket.is_open()) return {};
  ConnectState state = ConnectState::kPending;
  comes_true([&] { return (state = connect_state(socket)) != ConnectState::kPending; });
  return state == ConnectState::kConnected ? std::move(socket) : Socket();
}

/// The next visitor.
inline Socket accept_from(const Socket& listener) {
  Socket socket;
  bool is_exhausted = false;
  comes_true([&] { return (socket = accept_one(listener, is_exhausted)).is_open(); });
  return socket;
}

struct LinkPair {
  Socket a, b;
};
inline LinkPair connected_pair() {
  const Socket listener = listen_at("127.0.0.1", 0);
  LinkPair pair;
  pair.a = connect_to(port_of(listener));
  pair.b = accept_from(listener);
  return pair;
}

}  // namespace cuop::dist::test
