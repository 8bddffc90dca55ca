#include "cuop/dist/comm/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/bootstrap.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {

namespace {

using rank_test::rank_at;
using rank_test::ReservedPorts;
using rank_test::run_socket_ranks;

[[maybe_unused]] const bool kAreSocketsRegistered = [] {
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  const auto run = [](int ranks, const std::function<void(conformance::Rank)>& body) {
    run_socket_ranks(ranks, body);
  };
  conformance::register_suite("socket", kRanks, run, conformance::all_cases());
  return true;
}();

/// Nobody else takes a range that is in use: its first port is listened at.
TEST(Socket, PortsOfTestsAreReserved) {
  const ReservedPorts ports, others;
  EXPECT_NE(others.first(), ports.first());
  int error = 0;
  EXPECT_FALSE(try_listen("127.0.0.1", ports.first(), error).is_open());
  EXPECT_EQ(error, EADDRINUSE);
  EXPECT_TRUE(try_listen("127.0.0.1", ports.first() + 1, error).is_open());
}

TEST(Socket, MeetingHasADeadlineAndNamesTheMissing) {
  const ReservedPorts ports;
  const int port = ports.first();
  EXPECT_THAT(([&] { make_socket_communicator(rank_at(port, 0, 3, 0.2)); }),
              testing::ThrowsMessage<CommunicationError>(testing::HasSubstr("ranks 1, 2")));
  EXPECT_THAT(([&] { make_socket_communicator(rank_at(port, 1, 3, 0.2)); }),
              testing::ThrowsMessage<CommunicationError>(testing::HasSubstr("finds no rank 0")));
  EXPECT_THROW(make_socket_communicator(rank_at(port, 3, 3, 0.2)), ExecutionError);
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

/// Two communicators split from one, each driven by a thread of its own on every rank.
TEST(Socket, AThreadForEachCommunicator) {
  constexpr int kRanks = 3, kRounds = 150;
  std::atomic<int> wrong = 0;
  run_socket_ranks(kRanks, [&](conformance::Rank world) {
    const auto hammer = [&](const std::shared_ptr<Communicator>& comm, int seed) {
      const int next = (comm->rank() + 1) % kRanks, previous = (comm->rank() + 2) % kRanks;
      uint32_t state = static_cast<uint32_t>(seed);
      for (int round = 0; round < kRounds; ++round) {
        state = state * 1664525u + 1013904223u;  // the same on all ranks
        // Short messages, long ones (pieces) and in between.
        const int64_t bytes = state % 7 == 0 ? state % 1'500'000 : state % 3000;
        const auto out = conformance::pattern_bytes(comm->rank() + seed, bytes);
        std::vector<char> in(static_cast<size_t>(bytes));
        comm->sendrecv(out.data(), bytes, next, in.data(), bytes, previous, 3);
        if (in != conformance::pattern_bytes(previous + seed, bytes)) ++wrong;
        int64_t sum = comm->rank() + round;
        comm->all_reduce(&sum, &sum, 1, DType::kInt64, ReduceKind::kSum);
        if (sum != 3 + 3 * round) ++wrong;
      }
    };
    const auto first = world->split(0, 0);
    const auto second = world->split(0, 0);
    std::thread other([&] { hammer(second, 5); });
    hammer(first, 1);
    other.join();
    hammer(world, 9);
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace

}  // namespace cuop::dist
