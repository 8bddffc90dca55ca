#include "cuop/dist/comm/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/current.h"
#include "cuop/dist/comm/socket_hub.h"
#include "cuop/dist/comm/socket_link.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist {

namespace {

/// A port with free ones above it; a new range each time, and another one in each test process.
int new_port() {
  static std::atomic<int> next = 21000 + static_cast<int>(getpid() % 500) * 60;
  return next += 20;
}

/// Each rank is a thread, but all they share are TCP connections.
void run_socket_ranks(int ranks, const std::function<void(conformance::Rank)>& body) {
  const int port = new_port();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::shared_ptr<Communicator> comm;
      try {
        comm = make_socket_communicator({rank, ranks, "127.0.0.1", port, 20.0});
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

[[maybe_unused]] const bool kIsRegistered = [] {
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  conformance::register_suite("socket", kRanks, run_socket_ranks, conformance::all_cases());
  return true;
}();

TEST(Socket, StrangersOnThePortsAreIgnored) {
  const int port = new_port();
  const Socket taken = listen_on(port + 1);  // rank 0 must go one port up, the others find it there
  std::thread silent_visitor([&] {
    const Socket visitor = connect_once("127.0.0.1", port + 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  std::vector<std::thread> threads;
  std::atomic<int> met = 0;
  // The stranger's port accepts and closes.
  std::thread stranger([&] { accept_one(taken, steady_seconds() + 5.0); });
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto comm = make_socket_communicator({rank, 2, "127.0.0.1", port, 20.0});
      comm->barrier();
      ++met;
    });
  }
  for (std::thread& thread : threads) thread.join();
  stranger.join();
  silent_visitor.join();
  EXPECT_EQ(met, 2);
}

TEST(Socket, MeetingHasADeadlineAndNamesTheMissing) {
  const int port = new_port();
  EXPECT_THAT(([&] {
                make_socket_communicator({0, 3, "127.0.0.1", port, 0.2});
              }),
              testing::ThrowsMessage<CommunicationError>(testing::HasSubstr("ranks 1, 2")));
  EXPECT_THAT(([&] {
                make_socket_communicator({1, 3, "127.0.0.1", port, 0.2});
              }),
              testing::ThrowsMessage<CommunicationError>(testing::HasSubstr("finds no rank 0")));
  EXPECT_THROW(make_socket_communicator({3, 3, "127.0.0.1", port, 0.2}), ExecutionError);
}

TEST(Socket, ALostRankIsNamed) {
  std::atomic<int> named = 0;
  try {
    run_socket_ranks(3, [&](conformance::Rank comm) {
      try {
        // One may hear of the loss from another that is further, before its own first barrier ends.
        comm->barrier();
        if (comm->rank() == 1) return;  // its connections close
        for (;;) comm->barrier();
      } catch (const CommunicationError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("rank 1"));
        EXPECT_EQ(error.rank(), 1);
        ++named;
      }
    });
  } catch (const CommunicationError& error) {
    ADD_FAILURE() << error.what();
  }
  EXPECT_EQ(named, 2);
}

/// A send that is given up half way must not spoil the stream for the messages after it.
TEST(Socket, AHalfSentMessageIsFinishedFromACopy) {
  const Socket listener = listen_on(0);
  std::vector<Socket> a_links(2), b_links(2);
  a_links[1] = connect_once("127.0.0.1", port_of(listener));
  b_links[0] = accept_one(listener, steady_seconds() + 5.0);
  SocketHub a(0, std::move(a_links));
  SocketHub b(1, std::move(b_links));
  const FrameKey old_key{0, 0, 1};
  const FrameKey key{0, 1, 1};
  {
    std::vector<char> data(64'000'000, 'o');
    const auto given_up = a.post_send(data.data(), 64'000'000, 1, old_key);
    EXPECT_FALSE(given_up->test());
    EXPECT_GT(given_up->moved(), 0);
  }
  const char value = 'v';
  char got = 0;
  const auto sending = a.post_send(&value, 1, 1, key);
  const auto receiving = b.post_recv(&got, 1, 0, key);
  const double deadline = steady_seconds() + 20.0;
  while (!receiving->test() && steady_seconds() < deadline) a.progress();
  EXPECT_EQ(got, 'v');
  EXPECT_TRUE(sending->test());
}

}  // namespace

}  // namespace cuop::dist
