#include "cuop/dist/comm/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/current.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/comm/self.h"
#include "tests/conformance/communicator_suite.h"

namespace cuop::dist {

namespace {

[[maybe_unused]] const bool kIsRegistered = [] {
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  conformance::register_suite("thread", kRanks, run_ranks, conformance::all_cases());
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

TEST(RunRanks, RethrowsTheOriginalErrorAndWakesTheOthers) {
  std::atomic<int> woken = 0;
  try {
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
    FAIL() << "did not raise";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "rank 2 saw a wrong shape");
  }
  EXPECT_EQ(woken, 3);
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

TEST(RunRanks, RefusesNoRanks) {
  EXPECT_THROW(run_ranks(0, [](const auto&) {}), ExecutionError);
}

}  // namespace

}  // namespace cuop::dist
