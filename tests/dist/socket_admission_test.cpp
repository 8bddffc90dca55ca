// The two ends of a new connection, by themselves.
#include "cuop/dist/comm/socket_admission.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using rank_test::read_exactly;
using rank_test::write_text;

/// Rank 0 listens at all addresses of its name, and a rank tries all of them at once: both go on
/// with the same connection.
TEST(SocketAdmission, OfSeveralConnectionsBothSidesKeepTheSame) {
  const Job job = make_job(rank_test::kSecret, "a name of two addresses", 2);
  for (int run = 0; run < 20; ++run) {
    std::vector<Socket> listeners;
    std::vector<Visit> visits;
    for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
      listeners.push_back(listen_at(address, 0));
      visits.emplace_back(job, Introduction{1, 0, "node"}, 0,
                          Place{address, port_of(listeners.back())}, true);
    }
    Admission admission(job, 0, std::move(listeners));
    Socket admitted, link;
    int arrivals = 0;
    const auto advance = [&] {
      admission.advance([&](const Introduction&, Socket socket) {
        admitted = std::move(socket);
        ++arrivals;
      });
    };
    ASSERT_TRUE(rank_test::comes_true([&] {
      for (Visit& each : visits) {
        if (!each.advance()) continue;
        link = each.take_link();
        break;
      }
      if (!link.is_open()) advance();
      return link.is_open();
    }));
    visits.clear();
    ASSERT_TRUE(rank_test::comes_true([&] {
      advance();
      return arrivals > 0;
    }));
    advance();
    EXPECT_EQ(arrivals, 1);
    write_text(admitted, "table");
    EXPECT_EQ(read_exactly(link, 5), "table");
  }
}

/// However many come between its proof and its first word as a rank.
TEST(SocketAdmission, StrangersDriveOutNobodyWhoHasProvenItself) {
  const Job job = make_job(rank_test::kSecret, "between two words", 2);
  std::vector<Socket> listeners;
  listeners.push_back(listen_at("127.0.0.1", 0));
  const int port = port_of(listeners[0]);
  Admission admission(job, 0, std::move(listeners));
  int admitted = 0;
  const auto advance = [&] {
    admission.advance([&](const Introduction& who, Socket) { admitted += who.rank; });
  };
  Socket rank = rank_test::connect_to(port);
  advance();
  write_text(rank,
             make_greeting(job, read_exactly(rank, kChallengeBytes), {0, port}, {1, 0, "node"}));
  ASSERT_TRUE(rank_test::comes_true([&] {
    advance();
    char byte = 0;
    return rank.read_some(&byte, 1) == 1;  // it is welcome
  }));
  std::vector<Socket> strangers;
  for (size_t i = 0; i < kMostVisitors + 50; ++i) {
    strangers.push_back(rank_test::connect_to(port));
    if (i % 50 == 0) advance();
  }
  for (int i = 0; i < 3; ++i) advance();
  EXPECT_EQ(admitted, 0);
  write_text(rank, std::string(kArrival));
  EXPECT_TRUE(rank_test::comes_true([&] {
    advance();
    return admitted == 1;
  }));
}

}  // namespace
}  // namespace cuop::dist
