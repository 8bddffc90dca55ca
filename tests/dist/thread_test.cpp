#include "cuop/dist/comm/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/bootstrap.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/comm/self.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/error_of.h"

namespace cuop::dist {

namespace {

[[maybe_unused]] const bool kAreThreadsRegistered = [] {
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  conformance::register_suite(
      "thread", kRanks,
      [](int ranks, const std::function<void(conformance::Rank)>& body) { run_ranks(ranks, body); },
      conformance::all_cases());
  conformance::register_suite(
      "self", std::array{1},
      [](int, const std::function<void(conformance::Rank)>& body) {
        body(make_self_communicator());
      },
      conformance::all_cases());
  return true;
}();

TEST(RunRanks, GivesEachRankItsWorldItsShareAndItsTrace) {
  std::atomic<int> seen = 0;
  run_ranks(3, [&](const std::shared_ptr<Communicator>& comm) {
    EXPECT_EQ(current_communicator(), comm);
    EXPECT_EQ(trace::thread_rank(), comm->rank());
    EXPECT_EQ(backend::thread_count(), std::max(1, backend::core_count() / 3));
    seen += 1 << comm->rank();
  });
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(current_communicator(), nullptr);
}

TEST(RunRanks, AnAbortAfterAPartFailedBlamesWhomThePartBlamed) {
  run_ranks(4, [](const std::shared_ptr<Communicator>& comm) {
    const auto half = comm->split(comm->rank() % 2, 0);
    if (comm->rank() == 3) half->abort("enough");
    if (comm->rank() == 1) {
      EXPECT_THROW(half->barrier(), CommunicationError);
      comm->abort("our part failed");
    }
    const auto forever = [&] {
      for (;;) comm->barrier();
    };
    EXPECT_EQ(test::caught<CommunicationError>(forever).rank(), 3);
    comm->recover();
    if (comm->rank() == 0) comm->abort("on its own");  // forgets who failed before
    EXPECT_EQ(test::caught<CommunicationError>(forever).rank(), 0);
  });
}

TEST(RunRanks, ACancelledRankNoLongerWaitsToRecoverAndMayComeAgain) {
  std::atomic<bool> is_cancelled = false, was_told = false;
  run_ranks(2, [&](const std::shared_ptr<Communicator>& comm) {
    if (comm->rank() == 1) {
      comm->abort("enough");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      is_cancelled = true;
      while (!was_told) std::this_thread::yield();
    } else {
      EXPECT_THROW(comm->barrier(), CommunicationError);
      {
        const CancelScope scope(is_cancelled);
        EXPECT_THROW(comm->recover(), Interrupted);
      }
      was_told = true;
    }
    comm->recover();
    comm->barrier();
  });
}

/// Ranks 0 and 2 wait for rank 1, rank 3 for rank 2 in another part, and all give up at one moment:
/// that rank 2 has left its wait by then must not make it the cause.
TEST(RunRanks, WhoGivesUpWithOthersBlamesTheRankThatAllWaitFor) {
  std::array<std::atomic<int>, 4> begun = {};
  run_ranks(4, [&](const std::shared_ptr<Communicator>& comm) {
    const auto most = comm->split(comm->rank() == 3 ? 1 : 0, 0);
    const auto last = comm->split(comm->rank() < 2 ? 0 : 1, 0);
    for (const auto& each : {most, last}) each->set_timeout(0.02);
    const auto& mine = comm->rank() == 3 ? last : most;
    const auto wait_until_it_waits = [&](size_t rank, int turn) {
      while (comm->failure().empty() &&
             (begun[rank] < turn || comm->health()[rank].operation.empty())) {
        std::this_thread::yield();
      }
    };
    for (int turn = 1; turn <= 50; ++turn) {
      comm->barrier();
      while (comm->rank() == 1 && comm->failure().empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      // One right behind the other, however late a busy machine lets them come.
      if (comm->rank() == 2) wait_until_it_waits(0, turn);
      if (comm->rank() == 3) wait_until_it_waits(2, turn);
      begun[static_cast<size_t>(comm->rank())] = turn;
      EXPECT_EQ(test::caught<CommunicationError>([&] { mine->barrier(); }).rank(), 1);
      comm->recover();
    }
  });
}

/// The communicator between them is gone.
TEST(RunRanks, PartsOfPartsFailWithTheFirst) {
  run_ranks(2, [](const std::shared_ptr<Communicator>& comm) {
    const auto part = comm->split(0, 0)->split(0, 0);
    if (comm->rank() == 0) {
      comm->abort("enough");
      return;
    }
    const auto error = test::caught<CommunicationError>([&] { part->barrier(); });
    EXPECT_THAT(error.what(), testing::HasSubstr("enough"));
  });
}

TEST(RunRanks, SpansOfMessagesKnowWhatWasSent) {
  trace::clear();
  trace::set_recording(true);
  run_ranks(2, [](const std::shared_ptr<Communicator>& comm) {
    const std::vector<char> sent(static_cast<size_t>(100 * (comm->rank() + 1)));
    std::vector<char> got(static_cast<size_t>(100 * (2 - comm->rank())));
    const int other = 1 - comm->rank();
    comm->sendrecv(sent.data(), std::ssize(sent), other, got.data(), std::ssize(got), other, 4);
  });
  trace::set_recording(false);
  std::map<int, int64_t> bytes;
  for (const trace::Event& event : trace::events()) {
    if (event.name == "sendrecv") bytes[event.rank] += event.bytes;
  }
  trace::clear();
  EXPECT_EQ(bytes, (std::map<int, int64_t>{{0, 100}, {1, 200}}));
}

TEST(RunRanks, RethrowsTheOriginalErrorAndWakesTheOthers) {
  std::atomic<int> woken = 0;
  const std::string raised = test::error_of<ShapeError>([&] {
    run_ranks(4, [&](const std::shared_ptr<Communicator>& comm) {
      if (comm->rank() == 2) throw ShapeError("rank 2 saw a wrong shape");
      try {
        comm->barrier();
      } catch (const CommunicationError& error) {
        EXPECT_EQ(error.rank(), 2);
        EXPECT_THAT(error.what(), testing::HasSubstr("rank 2 saw a wrong shape"));
        ++woken;
        throw;
      }
    });
  });
  EXPECT_EQ(raised, "rank 2 saw a wrong shape");
  EXPECT_EQ(woken, 3);
}

TEST(RunRanks, RethrowsNothingThatARankHasHeardOfAnother) {
  const auto raise_last = [](int last, const std::function<void(int rank)>& raise) {
    run_ranks(3, [&](const std::shared_ptr<Communicator>& comm) {
      if (comm->rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      raise(comm->rank());
    });
  };
  const auto echo = [](int rank) { throw CommunicationError(cat("raised on rank ", rank), 1); };
  for (const int last : {0, 1, 2}) {
    EXPECT_THROW(raise_last(last,
                            [&](int rank) {
                              if (rank == last) throw ShapeError("what went wrong");
                              echo(rank);
                            }),
                 ShapeError);
  }
  EXPECT_EQ(test::error_of<CommunicationError>([&] { raise_last(1, echo); }), "raised on rank 1");
}

TEST(RunRanks, NamesTheRankThatReturnedTooEarly) {
  EXPECT_THAT(
      [] {
        run_ranks(3, [](const std::shared_ptr<Communicator>& comm) {
          if (comm->rank() != 1) comm->barrier();
        });
      },
      testing::ThrowsMessage<CommunicationError>(
          testing::HasSubstr("waits for rank 1, which has")));
}

TEST(RunRanks, Nests) {
  std::atomic<int> leaves = 0;
  run_ranks(2, [&](const std::shared_ptr<Communicator>& outer) {
    run_ranks(2, [&](const std::shared_ptr<Communicator>& inner) {
      inner->barrier();
      ++leaves;
    });
    EXPECT_EQ(current_communicator(), outer);
    outer->barrier();
  });
  EXPECT_EQ(leaves, 4);
}

std::atomic<bool> is_interrupted = false;

/// Interrupted while one rank waits for another, one computes, and one does neither.
TEST(RunRanks, AnInterruptEndsWaitsAndComputationsAndLeavesTheRestToItself) {
  set_interrupt_check([] { return is_interrupted.load(); });
  struct Shared {
    std::atomic<bool> may_end = false;
    std::atomic<int> started = 0, woken = 0, ended = 0;
  };
  const auto shared = std::make_shared<Shared>();
  const auto work = [shared](const std::shared_ptr<Communicator>& comm) {
    const auto count = [shared] { ++shared->ended; };
    ++shared->started;
    while (shared->started < 3) std::this_thread::yield();
    if (comm->rank() == 2) is_interrupted = true;
    try {
      if (comm->rank() == 0) comm->recv(nullptr, 0, 1, 0);
      while (comm->rank() == 1) check_interrupt();
    } catch (const std::exception&) {
      ++shared->woken;
      count();
      throw;
    }
    while (!shared->may_end) std::this_thread::yield();
    count();
  };
  std::atomic<int> asked = 0;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_ranks(3, work, [&] { ++asked; }), Interrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(asked, 1);
  while (shared->ended < 2) std::this_thread::yield();  // later on a busy machine
  EXPECT_EQ(shared->woken, 2);
  shared->may_end = true;
  while (shared->ended < 3) std::this_thread::yield();
  is_interrupted = false;
  set_interrupt_check(nullptr);
}

TEST(RunRanks, RefusesNoRanks) {
  EXPECT_THROW(run_ranks(0, [](const auto&) {}), ExecutionError);
}

}  // namespace

}  // namespace cuop::dist
