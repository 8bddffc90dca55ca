// What a pool tries before it refuses, step by step, and what it says when it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <string>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"
#include "tests/error_of.h"
#include "tests/memory/fake_device.h"

namespace cuop::memory {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

class PoolLadder : public ::testing::Test {
 protected:
  Pool& make(int64_t limit, bool can_map = true, int64_t large_granule = kGranule) {
    upstream_ = std::make_unique<FakeUpstream>(can_map, 1024 * kMiB, large_granule);
    MemoryPoolOptions options;
    options.limit_bytes = limit;
    options.quantum = 512;
    pool_ = std::make_unique<Pool>(*upstream_, order_, options);
    return *pool_;
  }
  std::string refusal(int64_t bytes, Stream on = stream(0)) {
    return test::error_of<MemoryError>(
        [&] { pool_->deallocate(pool_->allocate(bytes, on), bytes, on); });
  }

  FakeOrder order_;
  std::unique_ptr<FakeUpstream> upstream_;
  std::unique_ptr<Pool> pool_;
};

TEST_F(PoolLadder, FinishesPendingFreesFirst) {
  Pool& pool = make(48 * kMiB);
  void* a = pool.allocate(40 * kMiB, stream(1));
  pool.record_stream(a, stream(2));
  order_.submit(stream(2));
  pool.deallocate(a, 40 * kMiB, stream(1));
  EXPECT_EQ(pool.statistics().pending_bytes, 40 * kMiB);
  void* b = pool.allocate(40 * kMiB, stream(1));
  EXPECT_EQ(b, a);
  EXPECT_EQ(pool.statistics().waits_for_pending, 1);
  EXPECT_EQ(pool.statistics().cache_flushes, 0);
  EXPECT_EQ(pool.statistics().pending_bytes, 0);
  EXPECT_EQ(order_.waits(), 1);
  pool.deallocate(b, 40 * kMiB, stream(1));
}

TEST_F(PoolLadder, AnInterruptedWaitForPendingFreesLosesNone) {
  Pool& pool = make(48 * kMiB);
  void* blocks[2];
  for (void*& block : blocks) {
    block = pool.allocate(20 * kMiB, stream(1));
    pool.record_stream(block, stream(2));
    pool.record_stream(block, stream(3));
  }
  order_.submit(stream(2));
  order_.submit(stream(3));
  for (void* block : blocks) pool.deallocate(block, 20 * kMiB, stream(1));
  order_.set_interrupted(true);
  EXPECT_THROW(pool.allocate(40 * kMiB, stream(1)), Interrupted);
  EXPECT_THROW(pool.release_cached(), Interrupted);
  EXPECT_EQ(pool.statistics().pending_bytes, 40 * kMiB);
  order_.set_interrupted(false);
  pool.deallocate(pool.allocate(40 * kMiB, stream(1)), 40 * kMiB, stream(1));
  EXPECT_EQ(pool.statistics().pending_bytes, 0);
}

TEST_F(PoolLadder, AnInterruptedReleaseGoesOnLater) {
  for (const bool can_map : {true, false}) {
    Pool& pool = make(1024 * kMiB, can_map);
    void* blocks[3];
    for (int i = 0; i < 3; ++i) blocks[i] = pool.allocate(8 * kMiB, stream(i));
    for (int i = 0; i < 3; ++i) {
      order_.submit(stream(i));
      pool.deallocate(blocks[i], 8 * kMiB, stream(i));
    }
    order_.set_interrupted(true);
    EXPECT_THROW(pool.release_cached(), Interrupted);
    EXPECT_GT(upstream_->used(), 0) << "memory was taken from work in flight";
    order_.set_interrupted(false);
    pool.release_cached();
    EXPECT_EQ(upstream_->used(), 0);
    pool_.reset();
  }
}

TEST_F(PoolLadder, AnInterruptedWaitLeavesStraysWhereTheyWere) {
  Pool& pool = make(1024 * kMiB);
  void* const small = pool.allocate(512, stream(1));
  order_.submit(stream(2));
  pool.deallocate(small, 512, stream(2));
  order_.set_interrupted(true);
  EXPECT_THROW(pool.release_cached(), Interrupted);
  order_.set_interrupted(false);
  pool.release_cached();
  EXPECT_EQ(upstream_->used(), 0);
}

TEST_F(PoolLadder, TakesWhatOtherThreadsKeep) {
  Pool& pool = make(4 * kMiB);
  std::latch is_full(1), is_over(1);
  std::thread hoarder([&] {
    void* blocks[4];
    for (void*& block : blocks) block = pool.allocate(kMiB, stream(0));
    for (void* block : blocks) pool.deallocate(block, kMiB, stream(0));
    is_full.count_down();
    is_over.wait();
  });
  is_full.wait();
  EXPECT_GT(pool.statistics().thread_cached_bytes, 0);
  void* blocks[4];
  for (void*& block : blocks) block = pool.allocate(kMiB, stream(0));
  EXPECT_EQ(pool.statistics().cache_flushes, 1);
  EXPECT_EQ(pool.statistics().idle_releases, 0);
  for (void* block : blocks) pool.deallocate(block, kMiB, stream(0));
  is_over.count_down();
  hoarder.join();
}

TEST_F(PoolLadder, UnmapsItsOwnScatteredGranules) {
  Pool& pool = make(50 * kMiB);
  void* a = pool.allocate(16 * kMiB, stream(0));
  void* between = pool.allocate(2 * kMiB, stream(0));
  void* b = pool.allocate(16 * kMiB, stream(0));
  pool.deallocate(a, 16 * kMiB, stream(0));
  pool.deallocate(b, 16 * kMiB, stream(0));
  void* c = pool.allocate(40 * kMiB, stream(0));
  EXPECT_EQ(pool.statistics().idle_releases, 1);
  EXPECT_EQ(pool.statistics().takes_from_streams, 0);
  EXPECT_EQ(pool.statistics().reserved_bytes, 42 * kMiB);
  pool.deallocate(c, 40 * kMiB, stream(0));
  pool.deallocate(between, 2 * kMiB, stream(0));
}

TEST_F(PoolLadder, TakesABlockOfAnotherStreamBehindItsWork) {
  Pool& pool = make(40 * kMiB);
  void* a = pool.allocate(32 * kMiB, stream(1));
  const int64_t work = order_.submit(stream(1));
  pool.deallocate(a, 32 * kMiB, stream(1));
  void* b = pool.allocate(32 * kMiB, stream(2));
  EXPECT_EQ(b, a);
  EXPECT_EQ(pool.statistics().takes_from_streams, 1);
  EXPECT_EQ(pool.statistics().unmap_count, 0);
  EXPECT_EQ(order_.waits(), 0) << "the host waited, which the stream can do";
  EXPECT_TRUE(order_.is_ordered(stream(1).handle, work, stream(2).handle));
  pool.deallocate(b, 32 * kMiB, stream(2));
}

TEST_F(PoolLadder, UnmapsScatteredGranulesOfOtherStreams) {
  Pool& pool = make(40 * kMiB);
  void* a = pool.allocate(16 * kMiB, stream(1));
  void* between = pool.allocate(2 * kMiB, stream(1));
  void* b = pool.allocate(16 * kMiB, stream(1));
  order_.submit(stream(1));
  pool.deallocate(a, 16 * kMiB, stream(1));
  pool.deallocate(b, 16 * kMiB, stream(1));
  void* c = pool.allocate(32 * kMiB, stream(2));
  EXPECT_EQ(pool.statistics().takes_from_streams, 1);
  EXPECT_EQ(pool.statistics().unmap_count, 2);
  EXPECT_EQ(order_.waits(), 1);
  pool.deallocate(c, 32 * kMiB, stream(2));
  pool.deallocate(between, 2 * kMiB, stream(1));
}

TEST_F(PoolLadder, APlainUpstreamGetsWholeSegmentsBack) {
  Pool& pool = make(64 * kMiB, false);
  void* a = pool.allocate(30 * kMiB, stream(0));
  void* b = pool.allocate(30 * kMiB, stream(0));
  pool.deallocate(a, 30 * kMiB, stream(0));
  pool.deallocate(b, 30 * kMiB, stream(0));
  EXPECT_EQ(upstream_->used(), 60 * kMiB);
  void* c = pool.allocate(50 * kMiB, stream(0));
  EXPECT_EQ(upstream_->used(), 50 * kMiB);
  pool.deallocate(c, 50 * kMiB, stream(0));
}

TEST_F(PoolLadder, AsksTheProgramLast) {
  Pool& pool = make(40 * kMiB);
  void* hoard = pool.allocate(32 * kMiB, stream(0));
  std::vector<MemoryEvent> events;
  pool.set_callback(
      [&](const MemoryEvent& event) {
        events.push_back(event);
        EXPECT_EQ(pool.statistics().allocated_bytes, hoard == nullptr ? 0 : 32 * kMiB);
        if (hoard != nullptr) pool.deallocate(hoard, 32 * kMiB, stream(0));
        hoard = nullptr;
        // It may allocate too, and is not called for that.
        pool.deallocate(pool.allocate(kMiB, stream(0)), kMiB, stream(0));
        EXPECT_THROW(pool.allocate(500 * kMiB, stream(0)), MemoryError);
      },
      {});
  void* data = pool.allocate(30 * kMiB, stream(0));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, MemoryEvent::Kind::kOutOfMemory);
  EXPECT_EQ(events[0].requested, 30 * kMiB);
  EXPECT_EQ(events[0].allocated, 32 * kMiB);
  EXPECT_EQ(events[0].reserved, 32 * kMiB);
  EXPECT_EQ(events[0].capacity, 40 * kMiB);
  EXPECT_EQ(pool.statistics().callback_calls, 1);
  pool.deallocate(data, 30 * kMiB, stream(0));
}

TEST_F(PoolLadder, SaysWhatItHoldsAndGoesOn) {
  Pool& pool = make(64 * kMiB);
  set_site_provider([] { return std::string("model.py:17 in forward"); });
  void* large = pool.allocate(32 * kMiB, stream(0));
  set_site_provider({});
  void* unknown = pool.allocate(8 * kMiB, stream(0));
  std::vector<void*> more;
  for (int i = 1; i <= 5; ++i) more.push_back(pool.allocate(i * kMiB + 1, stream(0)));
  upstream_->set_others(512 * kMiB);

  const std::string text = refusal(40 * kMiB);
  EXPECT_THAT(text, HasSubstr("memory: 41943040 bytes were asked of cuda:0 (40 MiB)"));
  EXPECT_THAT(text, HasSubstr("live 55 MiB"));
  EXPECT_THAT(text, HasSubstr("reserved 56 MiB of a limit of 64 MiB"));
  EXPECT_THAT(text, HasSubstr("largest hole 704 KiB"));
  EXPECT_THAT(text, HasSubstr("fragmentation 0"));
  EXPECT_THAT(text, HasSubstr("the device has 1 GiB, 456 MiB of it free"));
  EXPECT_THAT(text, HasSubstr("other processes and libraries hold 512 MiB"));
  EXPECT_THAT(text, HasSubstr("largest holders: 32 MiB of model.py:17 in forward ("));
  EXPECT_THAT(text, HasSubstr("8 MiB ("));
  EXPECT_THAT(text, HasSubstr("3 MiB ("));
  EXPECT_THAT(text, Not(HasSubstr("2 MiB ("))) << "more than five holders";

  const auto error = test::caught<MemoryError>([&] { pool.allocate(200'000 * kMiB, stream(0)); });
  EXPECT_EQ(error.figures().requested, 200'000 * kMiB);
  EXPECT_EQ(error.figures().live, pool.statistics().allocated_bytes);
  EXPECT_EQ(error.figures().reserved, 56 * kMiB);
  EXPECT_EQ(pool.statistics().out_of_memory_count, 2);
  void* small = pool.allocate(100, stream(0));
  pool.deallocate(small, 100, stream(0));
  pool.deallocate(large, 32 * kMiB, stream(0));
  pool.deallocate(unknown, 8 * kMiB, stream(0));
  for (int i = 1; i <= 5; ++i) {
    pool.deallocate(more[static_cast<size_t>(i - 1)], i * kMiB + 1, stream(0));
  }
  pool.deallocate(pool.allocate(40 * kMiB, stream(0)), 40 * kMiB, stream(0));
}

TEST_F(PoolLadder, AHopelessRequestCostsNothing) {
  Pool& pool = make(64 * kMiB);
  void* idle = pool.allocate(32 * kMiB, stream(0));
  pool.deallocate(idle, 32 * kMiB, stream(0));
  const int64_t calls = upstream_->calls();
  refusal(65 * kMiB);
  EXPECT_EQ(upstream_->calls(), calls);
  EXPECT_EQ(pool.statistics().cached_bytes, 32 * kMiB);
  EXPECT_THAT(refusal(std::numeric_limits<int64_t>::max()), HasSubstr("9223372036854775807 bytes"));
}

TEST_F(PoolLadder, LargeGranulesThatDoNotFitAreNoReasonToRefuse) {
  Pool& pool = make(60 * kMiB, true, 32 * kMiB);
  void* a = pool.allocate(33 * kMiB, stream(0));  // two large granules would be 64 MiB
  EXPECT_EQ(pool.statistics().reserved_bytes, 34 * kMiB);
  EXPECT_EQ(pool.statistics().cache_flushes, 0) << "nothing had to be given up for it";
  EXPECT_THAT(refusal(40 * kMiB), HasSubstr("reserved 34 MiB of a limit of 60 MiB"));
  pool.deallocate(a, 33 * kMiB, stream(0));
  EXPECT_EQ(pool.allocate(34 * kMiB, stream(0)), a) << "it is kept for the next of its size";
  pool.deallocate(a, 34 * kMiB, stream(0));

  // Another stream takes it over too.
  void* b = pool.allocate(34 * kMiB, stream(1));
  EXPECT_EQ(b, a);
  pool.deallocate(b, 34 * kMiB, stream(1));
  pool.set_limit(kUnlimited);
  pool.release_cached();

  // The last of a device that neighbours hold: 36 MiB behind a large granule.
  upstream_->set_others((1024 - 68) * kMiB);
  void* most = pool.allocate(32 * kMiB, stream(0));
  EXPECT_EQ(pool.statistics().reserved_bytes, 32 * kMiB);
  void* rest = pool.allocate(35 * kMiB, stream(0));
  EXPECT_EQ(pool.statistics().reserved_bytes, 68 * kMiB);
  pool.deallocate(most, 32 * kMiB, stream(0));
  pool.deallocate(rest, 35 * kMiB, stream(0));
}

TEST_F(PoolLadder, ANeighbourCanHoldTheDevice) {
  Pool& pool = make(kUnlimited);
  upstream_->set_others(1000 * kMiB);
  const std::string text = refusal(100 * kMiB);
  EXPECT_THAT(text, HasSubstr("live 0 B, reserved 0 B, largest hole"));
  EXPECT_THAT(text, HasSubstr("other processes and libraries hold 1000 MiB"));
  EXPECT_THAT(text, Not(HasSubstr("holders")));
  pool.deallocate(pool.allocate(16 * kMiB, stream(0)), 16 * kMiB, stream(0));
  upstream_->set_others(0);
  pool.deallocate(pool.allocate(100 * kMiB, stream(0)), 100 * kMiB, stream(0));
}

}  // namespace
}  // namespace cuop::memory
