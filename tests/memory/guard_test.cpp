#include "cuop/memory/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/memory/host.h"
#include "cuop/memory/host_upstream.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"
#include "tests/error_of.h"

namespace cuop::memory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Guard : public ::testing::Test {
 protected:
  unsigned char* allocate(int64_t bytes) {
    return static_cast<unsigned char*>(guard_.allocate(bytes, {}));
  }
  HostBytes bytes_;
  HostResource host_;
  GuardResource guard_{host_, bytes_};
};

TEST_F(Guard, FindsNothingInASoundProgram) {
  unsigned char* a = allocate(1000);
  for (int i = 0; i < 1000; ++i) a[i] = 1;
  EXPECT_EQ(guard_.statistics().allocated_bytes, 1000);
  guard_.deallocate(a, 1000, {});
  EXPECT_THAT(guard_.check(), IsEmpty());
  EXPECT_THAT(guard_.leaks(), IsEmpty());
  EXPECT_EQ(guard_.statistics().allocated_bytes, 0);
}

TEST_F(Guard, FindsWritesAroundABlockAndTellsThemOnce) {
  set_site_provider([] { return std::string("model.py:3 in step"); });
  unsigned char* a = allocate(100);
  set_site_provider({});
  a[100] = 0;
  EXPECT_THAT(guard_.check(), ElementsAre(AllOf(HasSubstr("behind a block, 0 bytes after its end"),
                                                HasSubstr("model.py:3 in step"))));
  EXPECT_EQ(guard_.check().size(), 1u);
  guard_.deallocate(a, 100, {});
  EXPECT_EQ(guard_.check().size(), 1u);
  unsigned char* b = allocate(100);
  b[-3] = 0;
  guard_.deallocate(b, 100, {});
  EXPECT_THAT(guard_.check().back(), HasSubstr("before a block, 3 bytes ahead of it"));
}

TEST_F(Guard, FindsWritesIntoFreedBlocks) {
  unsigned char* a = allocate(100);
  guard_.deallocate(a, 100, {});
  EXPECT_EQ(a[50], GuardResource::kPoisonByte);
  a[50] = 0;
  EXPECT_THAT(guard_.check(), ElementsAre(HasSubstr("into a freed block at byte 50")));
  guard_.release_cached();
  EXPECT_EQ(guard_.check().size(), 1u);
}

TEST_F(Guard, FindsWritesIntoAFreedBlockThatWasDamagedWhileItLived) {
  unsigned char* a = allocate(100);
  a[100] = 0;
  guard_.deallocate(a, 100, {});
  a[50] = 0;
  EXPECT_THAT(guard_.check(), ElementsAre(HasSubstr("behind a block, 0 bytes after its end"),
                                          HasSubstr("into a freed block at byte 50")));
}

/// Blocks come, go and are unmapped while they are looked at.
TEST_F(Guard, FindsNothingWhileOtherThreadsAllocateAndFree) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int64_t n = i; !is_over; ++n) {
        const int64_t bytes = 1 + n * 7919 % 300'000;
        unsigned char* block = allocate(bytes);
        std::memset(block, i, static_cast<size_t>(bytes));
        guard_.deallocate(block, bytes, {});
      }
    });
  }
  std::vector<std::string> wrong;
  for (int i = 0; i < 60 && wrong.empty(); ++i) wrong = guard_.check();
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, IsEmpty());
}

TEST_F(Guard, ItsFiguresAreThoseOfTensors) {
  void* before = host_.allocate(1000, {});
  GuardResource guard(host_, bytes_);
  EXPECT_EQ(guard.statistics().allocated_bytes, 1000);
  void* a = guard.allocate(300, {});
  void* b = guard.allocate(50, {});
  guard.deallocate(a, 300, {});  // and held back
  EXPECT_EQ(guard.statistics().allocated_bytes, 1050);
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 1350);
  const Statistics now = guard.statistics();
  EXPECT_EQ(now.allocation_count - now.free_count, 2);
  host_.deallocate(before, 1000, {});
  guard.reset_peak();
  EXPECT_EQ(guard.statistics().allocated_bytes, 50);
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 50);
  guard.deallocate(b, 50, {});
  EXPECT_EQ(guard.statistics().allocated_bytes, 0);
}

TEST_F(Guard, HoldsNothingBackWhenItIsToldTo) {
  guard_.deallocate(allocate(100), 100, {});
  unsigned char* alive = allocate(10);
  guard_.set_holding(false);
  EXPECT_EQ(host_.statistics().allocated_bytes, 10 + 2 * GuardResource::kZone);
  guard_.deallocate(alive, 10, {});
  EXPECT_EQ(host_.statistics().allocated_bytes, 0);
  guard_.set_holding(true);
  guard_.deallocate(allocate(100), 100, {});
  EXPECT_GT(host_.statistics().allocated_bytes, 0);
}

TEST_F(Guard, FindsDoubleAndWrongFrees) {
  unsigned char* a = allocate(100);
  guard_.deallocate(a, 60, {});
  guard_.deallocate(a, 100, {});
  int local = 0;
  guard_.deallocate(&local, 4, {});
  EXPECT_THAT(guard_.check(), ElementsAre(HasSubstr("freed as one of 60 bytes: 100 B allocated"),
                                          HasSubstr("freed twice: 100 B"),
                                          HasSubstr("never allocated was freed (4 bytes")));
}

TEST_F(Guard, ListsWhatLivesLargestFirst) {
  unsigned char* a = allocate(10);
  set_site_provider([] { return std::string("train.py:9 in main"); });
  unsigned char* b = allocate(20);
  set_site_provider({});
  const auto leaks = guard_.leaks();
  ASSERT_EQ(leaks.size(), 2u);
  EXPECT_EQ(leaks[0].bytes, 20);
  EXPECT_EQ(leaks[0].site, "train.py:9 in main");
  EXPECT_EQ(leaks[1].site, "");
  guard_.deallocate(a, 10, {});
  guard_.deallocate(b, 20, {});
}

TEST_F(Guard, WhatItHoldsBackIsGivenWhenMemoryRunsOut) {
  PlainHostUpstream upstream;
  ImmediateOrder order;
  MemoryPoolOptions options;
  options.limit_bytes = int64_t{40} << 20;
  Pool pool(upstream, order, options);
  GuardResource guard(pool, bytes_);
  const int64_t size = int64_t{24} << 20;
  for (int i = 0; i < 4; ++i) guard.deallocate(guard.allocate(size, {}), size, {});
  const auto error = test::caught<MemoryError>([&] { guard.allocate(int64_t{64} << 20, {}); });
  EXPECT_EQ(error.figures().requested, int64_t{64} << 20);
  EXPECT_THAT(error.what(), HasSubstr("1024 of the bytes are red zones"));
  EXPECT_THAT(guard.check(), IsEmpty());
}

TEST_F(Guard, HoldsBackNoMoreThanItMay) {
  for (int i = 0; i < 1000; ++i) guard_.deallocate(allocate(64), 64, {});
  EXPECT_LE(host_.statistics().allocated_bytes,
            static_cast<int64_t>(GuardResource::kMaxHeldBlocks) * (64 + 2 * GuardResource::kZone));
  guard_.release_cached();
  EXPECT_EQ(host_.statistics().allocated_bytes, 0);
}

TEST(GuardOverPool, KeepsTheFiguresOfTensorsWhenItIsOffAgain) {
  HostBytes bytes;
  HostResource host;
  GuardResource guard(host, bytes);
  void* const first = guard.allocate(1000, {});
  guard.set_holding(false);
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 1000);
  void* const second = host.allocate(300, {});  // unguarded, as all are from now on
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 1300);
  guard.deallocate(first, 1000, {});
  EXPECT_EQ(guard.statistics().allocated_bytes, 300);
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 1300);
  guard.reset_peak();
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 300);
  void* const third = host.allocate(500, {});
  host.deallocate(third, 500, {});
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 800);
  guard.set_holding(true);
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 800);
  void* const fourth = guard.allocate(600, {});
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 900);
  guard.deallocate(fourth, 600, {});
  host.deallocate(second, 300, {});
  EXPECT_EQ(guard.statistics().peak_allocated_bytes, 900);
}

}  // namespace
}  // namespace cuop::memory
