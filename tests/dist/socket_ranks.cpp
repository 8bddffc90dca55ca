#include "tests/dist/socket_ranks.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist::rank_test {

ReservedPorts::ReservedPorts() {
  // Below 32768, where the system takes ports for connections that ask for none.
  constexpr int kLowest = 12000, kApart = 20, kRanges = 1000, kOfProcess = 7;
  static std::atomic<int> next = static_cast<int>(getpid()) * kOfProcess;
  const auto listen = [](int port) {
    int error = 0;
    return try_listen("127.0.0.1", port, error);
  };
  for (int tried = 0; tried < kRanges; ++tried) {
    first_ = kLowest + next++ % kRanges * kApart;
    held_ = listen(first_);
    bool is_free = held_.is_open();
    for (int offset = 1; is_free && offset < kApart; ++offset) {
      is_free = listen(first_ + offset).is_open();
    }
    if (is_free) return;
  }
  throw CommunicationError(
      cat("tests: none of the ", kRanges, " ranges of ports from ", kLowest, " on is free"));
}

void run_socket_ranks(int ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body) {
  const ReservedPorts ports;
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::shared_ptr<Communicator> comm;
      try {
        comm = make_socket_communicator(rank_at(ports.first(), rank, ranks));
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

Socket connect_to(int port, const std::string& address) {
  Socket socket = start_connect(address, port);
  if (!socket.is_open()) return {};
  ConnectState state = ConnectState::kPending;
  comes_true([&] { return (state = connect_state(socket)) != ConnectState::kPending; });
  return state == ConnectState::kConnected ? std::move(socket) : Socket();
}

LinkPair connected_pair() {
  const Socket listener = listen_at("127.0.0.1", 0);
  LinkPair pair;
  pair.a = connect_to(port_of(listener));
  bool is_exhausted = false;
  comes_true([&] { return (pair.b = accept_one(listener, is_exhausted)).is_open(); });
  return pair;
}

}  // namespace cuop::dist::rank_test
