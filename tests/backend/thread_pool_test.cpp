#include "cuop/backend/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cuop::backend {
namespace {

class ParallelFor : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }
};

TEST_P(ParallelFor, VisitsEveryIndexOnce) {
  for (int64_t count : {0, 1, 2, 7, 64, 1001}) {
    for (int64_t grain : {0, 1, 3, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        ASSERT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST_P(ParallelFor, RethrowsAndGoesOn) {
  EXPECT_THROW(parallel_for(100, 1,
                            [](int64_t begin, int64_t) {
                              if (begin >= 50 || begin == 0) throw std::runtime_error("broken");
                            }),
               std::runtime_error);
  std::atomic<int64_t> total = 0;
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
  EXPECT_EQ(total, 100);
}

TEST_P(ParallelFor, NestsSerially) {
  std::atomic<int64_t> total = 0;
  parallel_for(16, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(10, 1, [&](int64_t b, int64_t e) { total += e - b; });
    }
  });
  EXPECT_EQ(total, 160);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, ::testing::Values(1, 2, 5));

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&total] {
      set_thread_count(2);
      for (int i = 0; i < 200; ++i) {
        parallel_for(64, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 200 * 64);
}

// Copies to several GPUs at a time, and ranks that are threads: who comes second has helpers too.
TEST(ThreadPool, EveryCallerHasHelpersWhereThereAreCores) {
  if (core_count() < 2) GTEST_SKIP() << "needs two cores";
  constexpr int kWanted = 4;  // of each caller itself and a worker, at the same time
  std::atomic<int> present = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto stay = [&] {
    ++present;
    while (present < kWanted && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> callers;
  for (int c = 0; c < 2; ++c) {
    callers.emplace_back([&stay] {
      set_thread_count(2);
      parallel_for_each(2, 1, [&](int64_t) { stay(); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(present, kWanted);
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(ThreadPool, DividesTheCoresByTheLocalRanks) {
  set_local_ranks(core_count());
  EXPECT_EQ(thread_count(), 1);
  set_local_ranks(1);
  set_thread_count(3);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(0);
}

}  // namespace
}  // namespace cuop::backend
