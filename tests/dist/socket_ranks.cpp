#include "tests/dist/socket_ranks.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

namespace cuop::dist::test {

int new_port() {
  // Below 32768, where the system takes ports for connections that ask for none.
  constexpr int kFirst = 12000, kApart = 20, kRanges = 1000, kOfProcess = 7;
  static std::atomic<int> next = static_cast<int>(getpid()) * kOfProcess;
  for (;;) {
    const int port = kFirst + next++ % kRanges * kApart;
    int error = 0;
    bool is_free = true;
    for (int offset = 0; is_free && offset < kApart; ++offset) {
      is_free = try_listen("127.0.0.1", port + offset, error).is_open();
    }
    if (is_free) return port;
  }
}

void run_socket_ranks(int ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body) {
  const int port = new_port();
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

}  // namespace cuop::dist::test
