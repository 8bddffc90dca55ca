// Who is let in where ranks meet over TCP, and who does not get in their way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/socket_greeting.h"
#include "cuop/dist/comm/socket_rendezvous.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using rank_test::connect_to;
using rank_test::pause;
using rank_test::rank_at;
using rank_test::read_exactly;
using rank_test::ReservedPorts;
using rank_test::write_text;
using testing::AllOf;
using testing::HasSubstr;

std::atomic<bool> has_had_enough = false;

/// While it lives, `has_had_enough` ends all meetings within a second. To be made before the ranks.
class Impatience : NonCopyable {
 public:
  Impatience() {
    set_interrupt_check([] { return has_had_enough.load(); });
  }
  ~Impatience() {
    set_interrupt_check(nullptr);
    has_had_enough = false;
  }
};

/// Longer than what any of these tests may take: no deadline ends what is to end by itself.
constexpr double kLongWait = 60.0;

/// One rank that runs beside the test; what became of it.
class Rank {
 public:
  explicit Rank(SocketRank rank)
      : thread_([this, rank] {
          try {
            comm_ = make_socket_communicator(rank);
            comm_->barrier();
          } catch (const std::exception& error) {
            error_ = error.what();
          }
          seconds_ = steady_seconds() - start_;
        }) {}
  ~Rank() {
    if (thread_.joinable()) thread_.join();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  /// "" when it met the others.
  const std::string& join() {
    if (thread_.joinable()) thread_.join();
    return error_;
  }
  double seconds() const { return seconds_; }

 private:
  double start_ = steady_seconds();
  double seconds_ = 0.0;
  std::string error_;
  std::shared_ptr<Communicator> comm_;
  std::thread thread_;
};

Socket connect_when_there(int port, const std::string& address = "127.0.0.1") {
  Socket socket;
  rank_test::comes_true([&] { return (socket = connect_to(port, address)).is_open(); });
  return socket;
}

std::string identity(int port, int ranks) { return cat("127.0.0.1:", port, ":", ranks); }

/// Seconds until the other side ends the connection.
double seconds_to_the_end(Socket& socket) {
  const double start = steady_seconds();
  char byte = 0;
  try {
    for (;;) socket.read_all(&byte, 1, start + 20.0);
  } catch (const CommunicationError&) {
    return steady_seconds() - start;
  }
}

TEST(SocketStrangers, SilentOnesDelayNobody) {
  const ReservedPorts ports;
  const int port = ports.first();
  Rank root(rank_at(port, 0, 3, 2 * kLongWait));
  std::vector<Socket> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(connect_when_there(port + 1));
  const double start = steady_seconds();
  Rank one(rank_at(port, 1, 3, kLongWait)), two(rank_at(port, 2, 3, kLongWait));
  EXPECT_EQ(root.join(), "");
  EXPECT_EQ(one.join(), "");
  EXPECT_EQ(two.join(), "");
  EXPECT_LT(steady_seconds() - start, 5.0);  // 18 s when they are heard one after the other
}

/// A rank stays in the line of one that is too busy to look who has come.
TEST(SocketStrangers, ABusyRankIsNotLeft) {
  const ReservedPorts ports;
  const Socket busy = listen_at("127.0.0.1", ports.first() + 1);
  Rank one(rank_at(ports.first(), 1, 2, 4.0));
  wait_for_any({{busy.descriptor(), false}}, 60.0);  // it has come
  pause(2.0);
  bool is_exhausted = false;
  const Socket visitor = accept_one(busy, is_exhausted);
  EXPECT_TRUE(visitor.is_open());
  EXPECT_FALSE(accept_one(busy, is_exhausted).is_open());
  EXPECT_THAT(one.join(), HasSubstr("finds no rank 0"));
}

TEST(SocketStrangers, AreSentAwayWithinASecondAllAtOnce) {
  const ReservedPorts ports;
  const int port = ports.first();
  Rank root(rank_at(port, 0, 2, 2 * kLongWait));
  std::vector<Socket> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_when_there(port + 1));
  const double start = steady_seconds();
  // Half of them talk, and are sent away for what they say.
  for (size_t i = 0; i < 10; ++i) write_text(strangers[i], std::string(kGreetingBytes, 'G'));
  for (Socket& each : strangers) seconds_to_the_end(each);
  EXPECT_LT(steady_seconds() - start, 4.0);  // a second, and what a busy machine adds
  Rank one(rank_at(port, 1, 2));
  EXPECT_EQ(root.join(), "");
  EXPECT_EQ(one.join(), "");
}

TEST(SocketStrangers, MoreThanCanWaitMakeRoomForEachOther) {
  const ReservedPorts ports;
  const int port = ports.first();
  Rank root(rank_at(port, 0, 2));
  std::vector<Socket> strangers;
  for (int i = 0; i < 400; ++i) strangers.push_back(connect_when_there(port + 1));
  Rank one(rank_at(port, 1, 2));
  EXPECT_EQ(root.join(), "");
  EXPECT_EQ(one.join(), "");
}

/// They hold the ports where rank 0 is looked for: one says nothing, one talks, one speaks as cuOP.
TEST(SocketStrangers, OnThePortsOfRank0AreRecognised) {
  const ReservedPorts ports;
  const int port = ports.first();
  std::vector<Socket> taken;
  for (int offset = 1; offset <= 3; ++offset)
    taken.push_back(listen_at("127.0.0.1", port + offset));
  std::atomic<bool> is_over = false;
  std::string heard;
  std::thread strangers([&] {
    std::vector<Socket> visitors;
    bool is_exhausted = false;
    while (!is_over) {
      for (size_t i = 0; i < taken.size(); ++i) {
        Socket visitor = accept_one(taken[i], is_exhausted);
        if (!visitor.is_open()) continue;
        try {
          if (i == 1) write_text(visitor, std::string(500, 'x'));
          if (i == 2) {
            write_text(visitor, make_challenge());
            heard = read_exactly(visitor, kGreetingBytes);
            write_text(visitor, std::string(kWelcomeBytes, 'w'));
          }
        } catch (const CommunicationError&) {  // gone again
        }
        visitors.push_back(std::move(visitor));
      }
      pause(0.001);
    }
  });
  {
    Rank root(rank_at(port, 0, 2, kLongWait)), one(rank_at(port, 1, 2, kLongWait));
    EXPECT_EQ(root.join(), "");
    EXPECT_EQ(one.join(), "");
    EXPECT_LT(one.seconds(), 10.0);
  }
  is_over = true;
  strangers.join();
}

/// Somebody on another port passes the ranks' words on to each other: what the visitor proves holds
/// for the port that it came to.
TEST(SocketStrangers, ARelayIsNotLetIn) {
  const ReservedPorts ports;
  const int port = ports.first();
  const Impatience at_the_end;
  Rank root(rank_at(port, 0, 2, kLongWait));
  Socket to_root = connect_when_there(port + 1);
  Socket relay = listen_at("127.0.0.1", port + 2);
  const Job job = make_job(rank_test::kSecret, identity(port, 2), 2);
  const std::string challenge = read_exactly(to_root, kChallengeBytes);
  // A visitor of the relay, as rank 1 would answer there.
  write_text(to_root, make_greeting(job, challenge, {0, port + 2}, {1, 1234, "node"}));
  EXPECT_LT(seconds_to_the_end(to_root), 4.0);
  // The same words for the right port are believed.
  Socket direct = connect_when_there(port + 1);
  const std::string other = read_exactly(direct, kChallengeBytes);
  const std::string greeting = make_greeting(job, other, {0, port + 1}, {1, 1234, "node"});
  write_text(direct, greeting);
  EXPECT_TRUE(
      check_welcome(job, other, {0, port + 1}, greeting, read_exactly(direct, kWelcomeBytes)));
  has_had_enough = true;
}

TEST(SocketStrangers, ReplayedWordsAreNotBelieved) {
  const ReservedPorts ports;
  const int port = ports.first();
  const Impatience at_the_end;
  Rank root(rank_at(port, 0, 3, kLongWait));
  const Job job = make_job(rank_test::kSecret, identity(port, 3), 3);
  Socket first = connect_when_there(port + 1);
  const std::string challenge = read_exactly(first, kChallengeBytes);
  const std::string greeting = make_greeting(job, challenge, {0, port + 1}, {1, 1234, "node"});
  write_text(first, greeting);
  read_exactly(first, kWelcomeBytes);
  Socket second = connect_when_there(port + 1);
  read_exactly(second, kChallengeBytes);
  write_text(second, greeting);
  EXPECT_LT(seconds_to_the_end(second), 2.0);
  has_had_enough = true;
}

TEST(SocketStrangers, AnotherSecretIsRefusedAndTheErrorSaysSo) {
  const ReservedPorts ports;
  const int port = ports.first();
  std::string of_root, of_one;
  // Until they come upon each other in time, for which a busy machine may take seconds.
  for (double timeout = 1.0; timeout < 20.0; timeout *= 4) {
    SocketRank other = rank_at(port, 1, 2, timeout);
    other.secret = "another one that is long enough";
    Rank root(rank_at(port, 0, 2, timeout)), one(other);
    of_root = root.join();
    of_one = one.join();
    const auto says_so = [](const std::string& text) {
      return text.find("CUOP_JOB_SECRET") != std::string::npos;
    };
    if (says_so(of_root) && says_so(of_one)) break;
  }
  EXPECT_THAT(of_root, AllOf(HasSubstr("waited for rank 1"), HasSubstr("CUOP_JOB_SECRET"),
                             HasSubstr("127.0.0.1")));
  EXPECT_THAT(of_one, AllOf(HasSubstr("finds no rank 0"), HasSubstr("CUOP_JOB_SECRET")));
}

TEST(SocketStrangers, AShortSecretIsRefused) {
  const ReservedPorts ports;
  SocketRank rank = rank_at(ports.first(), 0, 2, 0.2);
  rank.secret = "short";
  EXPECT_THAT([&] { make_socket_communicator(rank); },
              testing::ThrowsMessage<CommunicationError>(HasSubstr("5 characters")));
}

TEST(SocketStrangers, TooManyRanksAreRefused) {
  const ReservedPorts ports;
  EXPECT_THAT([&] { make_socket_communicator(rank_at(ports.first(), 0, kMostSocketRanks + 1)); },
              testing::ThrowsMessage<CommunicationError>(HasSubstr("at most 4096")));
}

TEST(SocketStrangers, Rank0ListensAtItsAddressAlone) {
  const ReservedPorts ports;
  const int port = ports.first();
  Rank root(rank_at(port, 0, 2));
  ASSERT_TRUE(connect_when_there(port + 1).is_open());
  // All of 127.0.0.0/8 is this host: a listener on all interfaces would answer here too.
  EXPECT_FALSE(connect_to(port + 1, "127.0.0.2").is_open());
  EXPECT_FALSE(connect_to(port + 1, "::1").is_open());
  Rank one(rank_at(port, 1, 2));
  EXPECT_EQ(root.join(), "");
  EXPECT_EQ(one.join(), "");
}

TEST(SocketStrangers, NobodyListensOnceAllHaveMet) {
  const ReservedPorts ports;
  const int port = ports.first();
  Rank root(rank_at(port, 0, 3)), one(rank_at(port, 1, 3)), two(rank_at(port, 2, 3));
  EXPECT_EQ(root.join(), "");
  EXPECT_EQ(one.join(), "");
  EXPECT_EQ(two.join(), "");
  EXPECT_FALSE(connect_to(port + 1).is_open());
}

TEST(SocketStrangers, OtherRanksListenWhereTheyReachRank0) {
  const ReservedPorts ports;
  const int port = ports.first();
  SocketRank root_rank = rank_at(port, 0, 3, kLongWait), visitor = rank_at(port, 1, 3, kLongWait);
  root_rank.address = visitor.address = "127.0.0.3";
  const Job job = make_job(rank_test::kSecret, cat("127.0.0.3:", port, ":3"), 3);
  const Impatience at_the_end;
  Rank root(root_rank);
  Rank one(visitor);
  // As rank 2: rank 0 tells where rank 1 listens.
  Socket link = connect_when_there(port + 1, "127.0.0.3");
  const std::string challenge = read_exactly(link, kChallengeBytes);
  write_text(link, make_greeting(job, challenge, {0, port + 1}, {2, 4321, "node"}));
  read_exactly(link, kWelcomeBytes);
  write_text(link, std::string(kArrival));
  const size_t entry = sizeof(int32_t) + 64 + 64;
  const std::string table = read_exactly(link, 3 * entry);
  int32_t its_port = 0;
  std::memcpy(&its_port, table.data() + entry, sizeof(its_port));
  const std::string its_address = table.data() + entry + sizeof(its_port);
  EXPECT_TRUE(connect_to(its_port, its_address).is_open());
  EXPECT_FALSE(
      connect_to(its_port, its_address == "127.0.0.1" ? "127.0.0.2" : "127.0.0.1").is_open());
  has_had_enough = true;
}

TEST(SocketStrangers, ARankThatListensNowhereIsNamed) {
  const ReservedPorts ports;
  const int port = ports.first();
  const Job job = make_job(rank_test::kSecret, identity(port, 3), 3);
  Rank root(rank_at(port, 0, 3)), two(rank_at(port, 2, 3));
  // As rank 1, whom rank 2 would have to visit.
  Socket link = connect_when_there(port + 1);
  const std::string challenge = read_exactly(link, kChallengeBytes);
  write_text(link, make_greeting(job, challenge, {0, port + 1}, {1, 0, "node"}));
  read_exactly(link, kWelcomeBytes);
  write_text(link, std::string(kArrival));
  EXPECT_THAT(two.join(), HasSubstr("was told that rank 1 listens at port 0"));
}

TEST(SocketStrangers, RanksMeetOverIpv6AndByName) {
  for (const char* address : {"::1", "localhost"}) {
    const ReservedPorts ports;
    const int port = ports.first();
    SocketRank zero = rank_at(port, 0, 3), first = rank_at(port, 1, 3),
               second = rank_at(port, 2, 3);
    zero.address = first.address = second.address = address;
    Rank root(zero), one(first), two(second);
    EXPECT_EQ(root.join(), "") << address;
    EXPECT_EQ(one.join(), "") << address;
    EXPECT_EQ(two.join(), "") << address;
  }
}

TEST(SocketStrangers, AnAddressOfAnotherHostIsRefused) {
  const ReservedPorts ports;
  SocketRank rank = rank_at(ports.first(), 0, 2);
  rank.address = "198.51.100.7";  // for documentation alone: nobody has it
  EXPECT_THAT([&] { make_socket_communicator(rank); },
              testing::ThrowsMessage<CommunicationError>(
                  AllOf(HasSubstr("cannot listen at '198.51.100.7'"), HasSubstr("MASTER_ADDR"))));
}

void take_note(int) {}

/// A handled signal in every wait of the meeting, a thousand times a second.
TEST(SocketSignals, DoNotEndTheMeeting) {
  struct sigaction action {
  }, before{};
  action.sa_handler = take_note;  // without SA_RESTART: system calls are interrupted
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const ReservedPorts ports;
  const int port = ports.first();
  std::atomic<int> met = 0;
  const auto meet = [&](int rank) {
    try {
      make_socket_communicator(rank_at(port, rank, 4))->barrier();
      ++met;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) threads.emplace_back(meet, rank);
  const double start = steady_seconds();
  while (steady_seconds() - start < 0.6) {
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR1);
    pause(0.001);
  }
  threads.emplace_back(meet, 3);  // for whom the others have waited
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, 4);
  sigaction(SIGUSR1, &before, nullptr);
}

/// The user ends the meeting wherever it waits: rank 0 for the others, rank 1 with rank 0 for rank
/// 2, and a rank that finds nobody.
TEST(SocketSignals, TheUserEndsTheMeetingWithinASecond) {
  const Impatience user;
  const ReservedPorts ports, others;
  const int port = ports.first();
  std::atomic<int> ended = 0;
  const auto meet = [&](const SocketRank& rank) {
    try {
      make_socket_communicator(rank);
      ADD_FAILURE() << "rank " << rank.rank << " met somebody";
    } catch (const Interrupted&) {
      ++ended;
    } catch (const CommunicationError&) {  // rank 1 may first see that rank 0 has gone
      if (rank.rank == 1) ++ended;
    }
  };
  std::vector<std::thread> threads;
  for (const SocketRank& rank : {rank_at(port, 0, 3, kLongWait), rank_at(port, 1, 3, kLongWait),
                                 rank_at(others.first(), 1, 2, kLongWait)}) {
    threads.emplace_back(meet, rank);
  }
  pause(0.3);
  EXPECT_EQ(ended, 0);
  const double start = steady_seconds();
  has_had_enough = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(steady_seconds() - start, 1.0);
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace cuop::dist
