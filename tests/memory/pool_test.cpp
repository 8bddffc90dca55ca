#include "cuop/memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <random>
#include <string>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/memory/host_upstream.h"
#include "tests/memory/fake_device.h"

namespace cuop::memory {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class PoolOn : public ::testing::Test {
 protected:
  explicit PoolOn(bool can_map = true) : upstream_(can_map, 1024 * kMiB) {}
  MemoryPoolOptions options(int64_t cache_bytes = kUnlimited) const {
    MemoryPoolOptions result;
    result.quantum = 512;
    result.cache_bytes = cache_bytes;
    return result;
  }
  FakeOrder order_;
  FakeUpstream upstream_;
};
class PoolOnMapped : public PoolOn {};
class PoolOnPlain : public PoolOn {
 protected:
  PoolOnPlain() : PoolOn(false) {}
};

TEST(SizeClasses, RoundUpByAQuarterOfAPowerOfTwoAtMost) {
  for (const int64_t quantum : {int64_t{64}, int64_t{512}, int64_t{4096}}) {
    const SizeClasses classes(quantum);
    ASSERT_LE(classes.count(), SizeClasses::kMaxCount);
    EXPECT_EQ(classes.bytes(classes.count() - 1), SizeClasses::kLargest);
    for (int64_t bytes = 1; bytes <= SizeClasses::kLargest; bytes += 1 + bytes / 37) {
      const int64_t rounded = classes.bytes(classes.index(bytes));
      ASSERT_GE(rounded, bytes);
      ASSERT_EQ(rounded % quantum, 0);
      ASSERT_LE(rounded, std::max(quantum * ((bytes + quantum - 1) / quantum), bytes + bytes / 4));
      ASSERT_TRUE(classes.index(bytes) == 0 || classes.bytes(classes.index(bytes) - 1) < bytes);
    }
  }
}

// The driver locks memory of the host at any page.
TEST_F(PoolOnPlain, TakesWhatItIsAskedForWhereverMemoryBegins) {
  for (const int64_t offset : {int64_t{0}, int64_t{4096}, 60 * int64_t{1024}, kMiB + 4096}) {
    upstream_.plain_offset = offset;
    for (const int64_t bytes :
         {int64_t{1}, int64_t{4096}, 96 * int64_t{1024}, kMiB, kMiB + 1, 2 * kMiB, 10 * kMiB,
          10 * kMiB + 1, 12 * kMiB, 18 * kMiB - 4096, 18 * kMiB, 20 * kMiB, 64 * kMiB}) {
      Pool pool(upstream_, order_, options());
      void* const block = pool.allocate(bytes, stream(1));
      const auto address = reinterpret_cast<int64_t>(block);
      EXPECT_EQ(address % 512, 0);
      EXPECT_LE(pool.statistics().reserved_bytes, std::max(20 * kMiB, round_up(bytes, kGranule)))
          << bytes << " bytes, " << offset << " behind a granule";
      pool.deallocate(block, bytes, stream(1));
      EXPECT_EQ(pool.release_cached(), pool.statistics().peak_reserved_bytes);
      EXPECT_EQ(pool.statistics().reserved_bytes, 0);
    }
  }
}

TEST_F(PoolOnMapped, ReservesLessWhereAddressesAreFew) {
  for (const int64_t largest : {64 * kMiB, 16 * kMiB, 8 * kMiB}) {
    upstream_.largest_range = largest;
    Pool pool(upstream_, order_, options());
    void* const small = pool.allocate(kMiB, stream(1));
    ASSERT_NE(small, nullptr);
    void* const large = pool.allocate(4 * kMiB, stream(1));  // and its granule for alignment
    EXPECT_THROW(pool.allocate(largest + kMiB, stream(1)), MemoryError);
    pool.deallocate(small, kMiB, stream(1));
    pool.deallocate(large, 4 * kMiB, stream(1));
  }
}

TEST_F(PoolOnMapped, ReusesOnTheStreamWithoutWaitingOrAskingTheDevice) {
  Pool pool(upstream_, order_, options());
  for (const int64_t bytes : {int64_t{1000}, 100 * (kMiB / 1024), 30 * kMiB}) {
    void* a = pool.allocate(bytes, stream(1));
    order_.submit(stream(1));
    pool.deallocate(a, bytes, stream(1));
    const int64_t calls = upstream_.calls();
    EXPECT_EQ(pool.allocate(bytes, stream(1)), a);
    EXPECT_EQ(upstream_.calls(), calls);
    void* elsewhere = pool.allocate(bytes, stream(2));
    EXPECT_NE(elsewhere, a);
    pool.deallocate(a, bytes, stream(1));
    pool.deallocate(elsewhere, bytes, stream(2));
  }
  EXPECT_EQ(order_.records(), 0);
}

TEST_F(PoolOnMapped, GrowsByGranulesThatExtendWhatIsIdle) {
  Pool pool(upstream_, order_, options());
  void* a = pool.allocate(10 * kMiB, stream(0));
  EXPECT_EQ(upstream_.used(), 10 * kMiB);
  pool.deallocate(a, 10 * kMiB, stream(0));
  void* b = pool.allocate(13 * kMiB, stream(0));
  EXPECT_EQ(b, a) << "idle memory at the end of the segment was not extended";
  EXPECT_EQ(upstream_.used(), 14 * kMiB);
  pool.deallocate(b, 13 * kMiB, stream(0));
}

TEST(PoolOnLargeGranules, HugeBlocksAreMappedInLargePieces) {
  FakeUpstream upstream(true, 1024 * kMiB, 32 * kMiB);
  FakeOrder order;
  Pool pool(upstream, order);
  void* small = pool.allocate(3 * kMiB, stream(0));
  EXPECT_EQ(upstream.used(), 4 * kMiB);
  void* huge = pool.allocate(33 * kMiB, stream(0));
  EXPECT_EQ(upstream.used(), 68 * kMiB);
  pool.deallocate(huge, 33 * kMiB, stream(0));
  pool.deallocate(small, 3 * kMiB, stream(0));
  EXPECT_EQ(pool.release_cached(), 68 * kMiB);
}

TEST_F(PoolOnMapped, OnlySharedBlocksTakeEvents) {
  Pool pool(upstream_, order_, options());
  for (const int64_t bytes : {int64_t{1000}, 30 * kMiB}) {
    void* shared = pool.allocate(bytes, stream(1));
    void* own = pool.allocate(bytes, stream(1));
    pool.record_stream(shared, stream(2));
    pool.record_stream(shared, stream(1));  // its own stream orders itself
    pool.record_stream(shared, stream(2));
    order_.submit(stream(2));
    const int64_t records = order_.records();
    pool.deallocate(own, bytes, stream(1));
    EXPECT_EQ(order_.records(), records);
    pool.deallocate(shared, bytes, stream(1));
    EXPECT_EQ(order_.records(), records + 1);
    EXPECT_EQ(pool.statistics().pending_bytes, bytes);
    EXPECT_EQ(pool.statistics().allocated_bytes, 0);
    // Other work goes on elsewhere, and once the event has passed the block serves again.
    order_.finish_all();
    void* any = pool.allocate(40 * kMiB, stream(1));
    EXPECT_EQ(pool.statistics().pending_bytes, 0);
    pool.deallocate(any, 40 * kMiB, stream(1));
  }
}

TEST_F(PoolOnMapped, OnlyOwnBlocksAreMarked) {
  Pool pool(upstream_, order_, options());
  auto* block = static_cast<std::byte*>(pool.allocate(1000, stream(1)));
  int elsewhere = 0;
  pool.record_stream(&elsewhere, stream(2));
  pool.record_stream(block + 8, stream(2));
  pool.record_stream(nullptr, stream(2));
  order_.submit(stream(2));
  pool.deallocate(block, 1000, stream(1));
  EXPECT_EQ(order_.records(), 0);
}

TEST_F(PoolOnMapped, AMarkEndsWithTheBlock) {
  Pool pool(upstream_, order_, options());
  void* block = pool.allocate(1000, stream(1));
  pool.record_stream(block, stream(2));
  pool.deallocate(block, 1000, stream(1));  // stream 2 has no work
  const int64_t records = order_.records();
  for (int i = 0; i < 100; ++i) {
    pool.deallocate(pool.allocate(1000, stream(1)), 1000, stream(1));
  }
  EXPECT_EQ(order_.records(), records);
}

TEST_F(PoolOnMapped, LimitsCountMappedMemory) {
  Pool pool(upstream_, order_, options());
  pool.set_limit(20 * kMiB);
  void* a = pool.allocate(12 * kMiB, stream(0));
  EXPECT_THROW(pool.allocate(12 * kMiB, stream(0)), MemoryError);
  pool.deallocate(a, 12 * kMiB, stream(0));
  void* b = pool.allocate(20 * kMiB, stream(0));
  EXPECT_EQ(pool.statistics().reserved_bytes, 20 * kMiB);
  EXPECT_EQ(pool.statistics().capacity_bytes, 20 * kMiB);
  pool.deallocate(b, 20 * kMiB, stream(0));
  pool.set_limit(8 * kMiB);
  EXPECT_EQ(upstream_.used(), 8 * kMiB) << "idle memory above the limit was kept";
  pool.set_fraction(0.5);
  EXPECT_EQ(pool.capacity(), 512 * kMiB);
  pool.set_fraction(1.0);
  EXPECT_EQ(pool.capacity(), 1024 * kMiB);
  for (const double wrong : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(pool.set_fraction(wrong), ExecutionError);
  }
  EXPECT_THROW(pool.set_limit(-1), ExecutionError);
}

TEST_F(PoolOnMapped, ALimitBelowLiveMemoryStopsGrowthOnly) {
  Pool pool(upstream_, order_, options());
  void* a = pool.allocate(32 * kMiB, stream(0));
  pool.set_limit(16 * kMiB);
  EXPECT_EQ(upstream_.used(), 32 * kMiB);
  EXPECT_THROW(pool.allocate(4 * kMiB, stream(0)), MemoryError);
  pool.deallocate(a, 32 * kMiB, stream(0));
  pool.deallocate(pool.allocate(4 * kMiB, stream(0)), 4 * kMiB, stream(0));
}

TEST_F(PoolOnMapped, KeepsNoMoreThanTheCacheSize) {
  Pool pool(upstream_, order_, options(16 * kMiB));
  void* blocks[4];
  for (void*& block : blocks) block = pool.allocate(8 * kMiB, stream(0));
  for (void* block : blocks) pool.deallocate(block, 8 * kMiB, stream(0));
  EXPECT_LE(pool.statistics().cached_bytes, 16 * kMiB);
  EXPECT_GT(pool.statistics().cached_bytes, 0);
  pool.set_cache_size(0);
  EXPECT_EQ(upstream_.used(), 0);
  EXPECT_THROW(pool.set_cache_size(-1), ExecutionError);
}

TEST_F(PoolOnMapped, WhatHasBeenIdleLongestGoesFirst) {
  Pool pool(upstream_, order_, options());
  void *blocks[4], *between[4];
  for (int i = 0; i < 4; ++i) {  // blocks that stay live keep the idle ones apart
    blocks[i] = pool.allocate(8 * kMiB, stream(0));
    between[i] = pool.allocate(2 * kMiB, stream(0));
  }
  const int order[] = {2, 0, 3, 1};
  for (const int i : order) pool.deallocate(blocks[i], 8 * kMiB, stream(0));
  pool.set_cache_size(37 * kMiB / 2);  // and an eighth of that more goes, in whole granules
  EXPECT_EQ(pool.statistics().cached_bytes, 16 * kMiB);
  // What is left serves without growth, and is what was given back last.
  const int64_t reserved = pool.statistics().reserved_bytes;
  std::vector<void*> again;
  for (int i = 0; i < 2; ++i) again.push_back(pool.allocate(8 * kMiB, stream(0)));
  EXPECT_EQ(pool.statistics().reserved_bytes, reserved);
  EXPECT_THAT(again, ::testing::UnorderedElementsAre(blocks[3], blocks[1]));
  for (void* block : again) pool.deallocate(block, 8 * kMiB, stream(0));
  for (void* block : between) pool.deallocate(block, 2 * kMiB, stream(0));
}

TEST_F(PoolOnMapped, AFreeAboveTheCacheSizeDoesNotWaitForTheDevice) {
  Pool pool(upstream_, order_, options(0));
  void* a = pool.allocate(8 * kMiB, stream(1));
  order_.submit(stream(1));
  pool.deallocate(a, 8 * kMiB, stream(1));
  EXPECT_EQ(order_.waits(), 0);
  EXPECT_EQ(upstream_.used(), 8 * kMiB) << "memory was taken from work in flight";
  order_.finish_all();
  pool.deallocate(pool.allocate(4 * kMiB, stream(2)), 4 * kMiB, stream(2));
  EXPECT_EQ(upstream_.used(), 0);
}

TEST_F(PoolOnMapped, ThresholdsAreToldOnceEachTimeTheyAreCrossed) {
  Pool pool(upstream_, order_, options());
  pool.set_limit(100 * kMiB);
  std::vector<double> told;
  pool.set_callback(
      [&](const MemoryEvent& event) {
        EXPECT_EQ(event.kind, MemoryEvent::Kind::kThreshold);
        EXPECT_EQ(event.device, (Device{DeviceType::kCuda, 0}));
        EXPECT_EQ(event.capacity, 100 * kMiB);
        EXPECT_EQ(event.allocated, pool.statistics().allocated_bytes);
        EXPECT_GE(event.reserved, event.allocated);
        told.push_back(event.threshold);
      },
      {0.5, 0.25});
  void* a = pool.allocate(30 * kMiB, stream(0));
  void* b = pool.allocate(10 * kMiB, stream(0));
  EXPECT_EQ(told, (std::vector{0.25}));
  void* c = pool.allocate(20 * kMiB, stream(0));
  EXPECT_EQ(told, (std::vector{0.25, 0.5}));
  pool.deallocate(c, 20 * kMiB, stream(0));
  pool.deallocate(b, 10 * kMiB, stream(0));
  pool.deallocate(a, 30 * kMiB, stream(0));
  void* d = pool.allocate(60 * kMiB, stream(0));
  EXPECT_EQ(told.back(), 0.5);
  pool.set_callback({});
  pool.deallocate(d, 60 * kMiB, stream(0));
  EXPECT_THROW(pool.set_callback([](const MemoryEvent&) {}, {0.0}), ExecutionError);
  EXPECT_THROW(pool.set_callback([](const MemoryEvent&) {}, {1.1}), ExecutionError);
}

TEST_F(PoolOnMapped, ACallbackThatThrowsHarmsNobody) {
  Pool pool(upstream_, order_, options());
  pool.set_callback([](const MemoryEvent&) { throw ExecutionError("thrown on purpose"); }, {0.01});
  void* a = pool.allocate(100 * kMiB, stream(0));
  EXPECT_NE(a, nullptr);
  EXPECT_THROW(pool.allocate(2000 * kMiB, stream(0)), MemoryError);
  pool.deallocate(a, 100 * kMiB, stream(0));
}

TEST_F(PoolOnMapped, SmallBlocksCrossThresholdsToo) {
  Pool pool(upstream_, order_, options());
  pool.set_limit(40 * kMiB);
  int told = 0;
  pool.set_callback([&](const MemoryEvent&) { ++told; }, {0.5});
  std::vector<void*> blocks;
  for (int i = 0; i < 25 * 16; ++i) blocks.push_back(pool.allocate(64 * 1024, stream(0)));
  EXPECT_EQ(told, 1);
  for (void* block : blocks) pool.deallocate(block, 64 * 1024, stream(0));
}

TEST_F(PoolOnMapped, AThreadThatEndsReturnsItsCache) {
  Pool pool(upstream_, order_, options());
  std::thread([&] {
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(pool.allocate(1000, stream(0)));
    for (void* block : blocks) pool.deallocate(block, 1000, stream(0));
  }).join();
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.thread_cached_bytes, 0);
  EXPECT_EQ(s.allocated_bytes, 0);
  EXPECT_EQ(s.allocation_count, 100);
  EXPECT_EQ(s.free_count, 100);
  EXPECT_EQ(s.peak_allocated_bytes, 100'000);
  pool.release_cached();
  EXPECT_EQ(upstream_.used(), 0);
}

TEST_F(PoolOnMapped, AThreadMayOutliveThePool) {
  std::latch is_used(1), is_gone(1);
  std::thread thread;
  {
    Pool pool(upstream_, order_, options());
    thread = std::thread([&] {
      pool.deallocate(pool.allocate(1000, stream(0)), 1000, stream(0));
      is_used.count_down();
      is_gone.wait();
      Pool next(upstream_, order_, options());  // another pool, perhaps at the same address
      next.deallocate(next.allocate(1000, stream(0)), 1000, stream(0));
    });
    is_used.wait();
  }
  is_gone.count_down();
  thread.join();
}

TEST_F(PoolOnMapped, ADoubleFreeOfALargeBlockIsIgnored) {
  Pool pool(upstream_, order_, options());
  void* a = pool.allocate(4 * kMiB, stream(0));
  pool.deallocate(a, 4 * kMiB, stream(0));
  pool.deallocate(a, 4 * kMiB, stream(0));
  EXPECT_EQ(pool.statistics().allocated_bytes, 0);
  EXPECT_EQ(pool.statistics().free_count, 1);
}

TEST_F(PoolOnPlain, FragmentationIsWhatAModelSays) {
  Pool pool(upstream_, order_, options());
  // One shared segment of 20 MiB, cut and freed at random; the model is a row of 64 KiB cells.
  constexpr int64_t kCell = 64 * 1024, kCells = 20 * 16;
  std::vector<char> is_live(kCells, 0);
  std::vector<std::pair<void*, int64_t>> live;
  std::mt19937 random(3);
  pool.set_limit(20 * kMiB);
  void* first = pool.allocate(2 * kMiB, stream(0));
  const auto start = reinterpret_cast<int64_t>(first);
  pool.deallocate(first, 2 * kMiB, stream(0));
  for (int i = 0; i < 2000; ++i) {
    const bool allocates = live.empty() || random() % 2 == 0;
    if (allocates) {
      const int64_t bytes = kMiB + kCell * (1 + static_cast<int64_t>(random() % 10));
      int64_t largest = 0, run = 0;
      for (const char cell : is_live) largest = std::max(largest, run = cell ? 0 : run + kCell);
      if (bytes > largest) {
        EXPECT_THROW(pool.allocate(bytes, stream(0)), MemoryError);
        continue;
      }
      void* data = pool.allocate(bytes, stream(0));
      live.emplace_back(data, bytes);
      const int64_t at = (reinterpret_cast<int64_t>(data) - start) / kCell;
      for (int64_t c = at; c < at + bytes / kCell; ++c) is_live[static_cast<size_t>(c)] = 1;
    } else {
      std::swap(live[random() % live.size()], live.back());
      const auto [data, bytes] = live.back();
      live.pop_back();
      pool.deallocate(data, bytes, stream(0));
      const int64_t at = (reinterpret_cast<int64_t>(data) - start) / kCell;
      for (int64_t c = at; c < at + bytes / kCell; ++c) is_live[static_cast<size_t>(c)] = 0;
    }
    int64_t largest = 0, run = 0, total = 0;
    for (const char cell : is_live) {
      largest = std::max(largest, run = cell ? 0 : run + kCell);
      total += cell ? 0 : kCell;
    }
    const Statistics s = pool.statistics();
    ASSERT_EQ(s.cached_bytes, total);
    ASSERT_EQ(s.largest_free_bytes, largest);
    ASSERT_DOUBLE_EQ(
        s.fragmentation,
        total == 0 ? 0.0 : 1.0 - static_cast<double>(largest) / static_cast<double>(total));
  }
  for (const auto& [data, bytes] : live) pool.deallocate(data, bytes, stream(0));
}

TEST_F(PoolOnPlain, ModerateBlocksShareASegmentWhenThereIsRoom) {
  Pool pool(upstream_, order_, options());
  void* a = pool.allocate(6 * kMiB, stream(0));
  EXPECT_EQ(upstream_.used(), 20 * kMiB);
  void* b = pool.allocate(6 * kMiB, stream(0));
  EXPECT_EQ(upstream_.used(), 20 * kMiB);
  pool.deallocate(a, 6 * kMiB, stream(0));
  pool.deallocate(b, 6 * kMiB, stream(0));
  pool.set_limit(8 * kMiB);
  void* c = pool.allocate(6 * kMiB, stream(0));
  EXPECT_EQ(upstream_.used(), 6 * kMiB);
  pool.deallocate(c, 6 * kMiB, stream(0));
}

// The one sanitizer ends a child that was forked beside threads; of the other's allocator the child
// may find a lock held for ever.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
template <class Upstream>
class PoolAndFork : public ::testing::Test {};
using HostUpstreams = ::testing::Types<MappedHostUpstream, PlainHostUpstream>;
TYPED_TEST_SUITE(PoolAndFork, HostUpstreams);

TYPED_TEST(PoolAndFork, AForkedChildCanAllocate) {
  // The fake device's lock would not survive a fork; the system's memory does.
  TypeParam upstream;
  ImmediateOrder order;
  Pool pool(upstream, order);
  const auto use = [&pool](uintptr_t number) {
    const Stream queue{kCpu, reinterpret_cast<void*>(number)};
    pool.deallocate(pool.allocate(4 * kMiB, queue), 4 * kMiB, queue);
    pool.deallocate(pool.allocate(100, queue), 100, queue);
  };
  std::atomic<bool> is_over = false;
  std::thread busy([&] {
    while (!is_over) {
      use(0);
      pool.release_cached();  // so that the next round asks the system again
    }
  });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a lock that nobody holds any more would wait for ever
      use(1);
      _exit(pool.statistics().reserved_bytes > 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  is_over = true;
  busy.join();
}
#endif

}  // namespace
}  // namespace cuop::memory
