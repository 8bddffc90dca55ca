// Ranks that stay: their threads serve the next call, and no failure of one reaches another.
#include "cuop/dist/comm/rank_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/bootstrap.h"

namespace cuop::dist {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// Threads that have asked for theirs and have not ended.
std::atomic<int> threads_alive = 0;

/// How many calls a thread has served.
int& calls_of_thread() {
  struct Served {
    int calls = 0;
    Served() { ++threads_alive; }
    ~Served() { --threads_alive; }
  };
  thread_local Served served;
  return served.calls;
}

/// The number of the call on each rank's thread, the ranks having met.
std::vector<int> serve(int ranks) {
  std::vector<int> calls(static_cast<size_t>(ranks));
  run_on_team(ranks, kCpu, [&](const CommunicatorPtr& comm) {
    const int64_t mine = comm->rank();
    int64_t sum = 0;
    comm->all_reduce(&mine, &sum, 1, DType::kInt64, ReduceKind::kSum);
    EXPECT_EQ(sum, ranks * (ranks - 1) / 2);
    calls[static_cast<size_t>(comm->rank())] = ++calls_of_thread();
  });
  return calls;
}

TEST(RankTeam, ServesTheNextCallOnTheSameThreads) {
  std::array<std::vector<std::thread::id>, 2> threads;
  std::array<std::vector<Communicator*>, 2> communicators;
  for (size_t call = 0; call < 2; ++call) {
    threads[call].resize(3);
    communicators[call].resize(3);
    run_on_team(3, kCpu, [&](const CommunicatorPtr& comm) {
      const auto rank = static_cast<size_t>(comm->rank());
      threads[call][rank] = std::this_thread::get_id();
      communicators[call][rank] = comm.get();
      EXPECT_EQ(comm->size(), 3);
      EXPECT_EQ(current_communicator(), comm);
      EXPECT_EQ(trace::thread_rank(), comm->rank());
      EXPECT_EQ(backend::current_device(), kCpu);
    });
  }
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_EQ(communicators[0], communicators[1]);
  const std::set<std::thread::id> different(threads[0].begin(), threads[0].end());
  EXPECT_EQ(different.size(), 3u);
  EXPECT_EQ(different.count(std::this_thread::get_id()), 0u);
}

TEST(RankTeam, SharesOutTheCallersThreadsInEachCall) {
  for (const int threads : {6, 2, 1}) {
    backend::set_thread_count(threads);
    run_on_team(2, kCpu, [&](const CommunicatorPtr&) {
      EXPECT_EQ(backend::thread_count(), std::max(1, threads / 2));
    });
  }
  backend::set_thread_count(0);
}

TEST(RankTeam, AnErrorEndsItsRanksAndTheNextCallWorks) {
  serve(3);
  EXPECT_THAT(serve(3), Each(::testing::Gt(1)));
  for (const int culprit : {0, 1, 2}) {
    std::atomic<int> woken = 0;
    try {
      run_on_team(3, kCpu, [&](const CommunicatorPtr& comm) {
        if (comm->rank() == culprit) throw MemoryError("no memory left");
        try {
          comm->barrier();
        } catch (const CommunicationError& error) {
          EXPECT_EQ(error.rank(), culprit);
          ++woken;
          throw;
        }
      });
      ADD_FAILURE() << "nothing was raised";
    } catch (const MemoryError& error) {
      EXPECT_STREQ(error.what(), "no memory left");
    }
    EXPECT_EQ(woken, 2);
    EXPECT_THAT(serve(3), Each(1));  // on new threads
  }
}

TEST(RankTeam, AFailureThatTheWorkKeepsToItselfEndsItsRanksToo) {
  serve(5);  // no other test leaves two teams of 5, of which one would serve after the other
  run_on_team(5, kCpu, [](const CommunicatorPtr& comm) { comm->abort("for a test"); });
  EXPECT_THAT(serve(5), Each(1));
}

TEST(RankTeam, LetsGoOfTheWorkAndOfTheRanksThatEnd) {
  const auto owned = std::make_shared<int>(7);
  run_on_team(4, kCpu, [owned](const CommunicatorPtr&) { EXPECT_EQ(*owned, 7); });
  EXPECT_EQ(owned.use_count(), 1);
  std::weak_ptr<Communicator> seen;
  EXPECT_THROW(run_on_team(4, kCpu,
                           [&, owned](const CommunicatorPtr& comm) {
                             if (comm->rank() > 0) return;
                             seen = comm;
                             throw ShapeError("for a test");
                           }),
               ShapeError);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_TRUE(seen.expired());
}

std::atomic<bool> has_interrupted = false;

TEST(RankTeam, AnInterruptEndsWaitsAndComputationsAndTheNextCallWorks) {
  serve(3);
  set_interrupt_check([] { return has_interrupted.load(); });
  std::atomic<int> started = 0, ended = 0;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_on_team(3, kCpu,
                           [&](const CommunicatorPtr& comm) {
                             ++started;
                             while (started < 3) std::this_thread::yield();
                             if (comm->rank() == 2) has_interrupted = true;
                             try {
                               if (comm->rank() == 0) comm->recv(nullptr, 0, 1, 0);
                               while (true) check_interrupt();
                             } catch (...) {
                               ++ended;
                               throw;
                             }
                           }),
               Interrupted);
  EXPECT_EQ(ended, 3);  // nobody is left to himself: the work is not his own
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  has_interrupted = false;
  set_interrupt_check(nullptr);
  EXPECT_THAT(serve(3), Each(1));
}

TEST(RankTeam, AnInterruptBetweenTwoMeetingsOfTheRanksEndsTheCall) {
  const auto start = std::chrono::steady_clock::now();
  set_interrupt_check([] { return true; });
  const auto meet_late = [](const CommunicatorPtr& comm) {
    while (comm->failure().empty()) std::this_thread::yield();
    run_together(
        *comm, "for a test", [] {}, [] {});
  };
  for (const int ranks : {2, 3}) {
    EXPECT_THROW(run_on_team(ranks, kCpu, meet_late), Interrupted);
  }
  set_interrupt_check(nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_THAT(serve(3), Each(1));
}

TEST(RankTeam, NobodyWaitsToRecoverWithARankThatHasFailed) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> told = 0;
  EXPECT_THROW(run_on_team(3, kCpu,
                           [&](const CommunicatorPtr& comm) {
                             if (comm->rank() == 1) throw MemoryError("no memory left");
                             EXPECT_THROW(comm->barrier(), CommunicationError);
                             try {
                               comm->recover();
                             } catch (const CommunicationError& error) {
                               EXPECT_EQ(error.rank(), 1);
                               EXPECT_THAT(error.what(), HasSubstr("rank 1, which has ended"));
                               ++told;
                             }
                           }),
               MemoryError);
  EXPECT_EQ(told, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_THAT(serve(3), Each(1));
}

TEST(RankTeam, CallersAtOnceHaveRanksOfTheirOwn) {
  constexpr int kCallers = 8, kCalls = 20;
  const int before = threads_alive;
  std::atomic<int> ready = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      ++ready;
      while (ready < kCallers) std::this_thread::yield();
      for (int call = 0; call < kCalls; ++call) {
        const int64_t salt = caller * 1000 + call;
        std::array<int64_t, 2> sums{};
        const auto work = [&](const CommunicatorPtr& comm) {
          ++calls_of_thread();
          if (salt % 7 == 3 && comm->rank() == 1) throw IndexError("for a test");
          const int64_t mine = salt + comm->rank();
          comm->all_reduce(&mine, &sums[static_cast<size_t>(comm->rank())], 1, DType::kInt64,
                           ReduceKind::kSum);
        };
        if (salt % 7 == 3) {
          EXPECT_THROW(run_on_team(2, kCpu, work), IndexError);
        } else {
          run_on_team(2, kCpu, work);
          EXPECT_THAT(sums, Each(2 * salt + 1));
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(threads_alive, before + static_cast<int>(kIdleTeams) * 2);
}

TEST(RankTeam, ACallFromInsideOfOneHasRanksOfItsOwn) {
  std::array<std::thread::id, 2> outer, inner;
  for (int repeat = 0; repeat < 2; ++repeat) {
    run_on_team(2, kCpu, [&](const CommunicatorPtr& comm) {
      const auto rank = static_cast<size_t>(comm->rank());
      outer[rank] = std::this_thread::get_id();
      if (rank == 1) {
        run_on_team(2, kCpu, [&](const CommunicatorPtr& nested) {
          EXPECT_NE(nested, comm);
          inner[static_cast<size_t>(nested->rank())] = std::this_thread::get_id();
          nested->barrier();
        });
        EXPECT_EQ(current_communicator(), comm);
      }
      comm->barrier();
    });
    const std::set<std::thread::id> different{outer[0], outer[1], inner[0], inner[1]};
    EXPECT_EQ(different.size(), 4u);
  }
}

TEST(RankTeam, OfManySizesOnlyTheLastUsedStay) {
  for (int ranks = 1; ranks <= 6; ++ranks) serve(ranks);
  EXPECT_THAT(serve(6), Each(::testing::Gt(1)));
  EXPECT_THAT(serve(3), Each(::testing::Gt(1)));
  EXPECT_THAT(serve(1), Each(1));
}

TEST(RankTeam, RefusesNoRanks) {
  EXPECT_THROW(run_on_team(0, kCpu, [](const auto&) {}), ExecutionError);
}

#if !defined(__SANITIZE_THREAD__)  // which lets a forked child start no threads
TEST(RankTeam, AForkedChildHasRanksOfItsOwn) {
  serve(2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that waits for threads which it does not have
    const std::vector<int> calls = serve(2);
    _exit(calls == std::vector<int>{1, 1} ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(serve(2), Each(::testing::Gt(1)));  // here the ranks are as they were
}
#endif

}  // namespace
}  // namespace cuop::dist
