// Random programs on several streams and threads, checked against models of what must hold: blocks
// do not overlap, memory is reused only behind the work that used it, nothing is lost.
// POOL_FUZZ_OPERATIONS sets their length.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "cuop/core/error.h"
#include "cuop/memory/pool.h"
#include "tests/memory/fake_device.h"
#include "tests/sanitized.h"

namespace cuop::memory {
namespace {

using namespace testing;

int operations(int otherwise) {
  const char* text = std::getenv("POOL_FUZZ_OPERATIONS");
  return text == nullptr ? otherwise / test::kCaseStep : std::atoi(text);
}

/// Which work last used which addresses.
class UseMap {
 public:
  using Uses = std::vector<std::pair<void*, int64_t>>;  ///< (stream, number of its work)

  void add(int64_t start, int64_t end, Uses uses) { ranges_[start] = {end, std::move(uses)}; }
  /// Calls `check(uses)` for all that touch the range.
  template <class Check>
  void for_overlaps(int64_t start, int64_t end, Check&& check) {
    auto range = ranges_.upper_bound(start);
    if (range != ranges_.begin()) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      if (range->second.first > start) check(range->second.second);
    }
  }
  void clear(int64_t start, int64_t end) {
    auto range = ranges_.upper_bound(start);
    if (range != ranges_.begin()) --range;
    while (range != ranges_.end() && range->first < end) {
      const auto [from, value] = *range;
      range = ranges_.erase(range);
      if (value.first <= start) {
        ranges_[from] = value;
        continue;
      }
      if (from < start) ranges_[from] = {start, value.second};
      if (value.first > end) range = ranges_.emplace(end, value).first;
    }
  }

 private:
  std::map<int64_t, std::pair<int64_t, Uses>> ranges_;
};

int64_t random_size(std::mt19937& random) {
  switch (random() % 10) {
    case 0:
      return 1 + static_cast<int64_t>(random() % (24 * kMiB));
    case 1:
    case 2:
      return 1 + static_cast<int64_t>(random() % (2 * kMiB));
    default:
      return 1 + static_cast<int64_t>(random() % 20'000);
  }
}

/// Mapped bytes of a snapshot; also checks that the blocks of each segment tile it.
int64_t check_tiling(const PoolSnapshot& snapshot) {
  int64_t mapped = 0;
  for (const auto& segment : snapshot.segments) {
    for (size_t i = 0; i < segment.size(); ++i) {
      const BlockReport& block = segment[i];
      EXPECT_GT(block.bytes, 0);
      EXPECT_NE(block.state, BlockState::kInTransit);
      if (block.state != BlockState::kUnmapped) mapped += block.bytes;
      if (i == 0) continue;
      const BlockReport& before = segment[i - 1];
      EXPECT_EQ(before.address + static_cast<uint64_t>(before.bytes), block.address);
      const bool is_idle = block.state != BlockState::kLive;
      const bool joins = is_idle && before.state == block.state && before.stream == block.stream;
      EXPECT_FALSE(joins) << "neighbours were not joined";
    }
  }
  return mapped;
}

struct Config {
  bool can_map;
  int64_t quantum;
  int64_t cache_bytes;
  int64_t large_granule;
  const char* name;
};

class PoolFuzz : public ::testing::TestWithParam<Config> {};

TEST_P(PoolFuzz, OneThreadManyStreams) {
  const Config config = GetParam();
  struct Live {
    int64_t bytes;
    Stream stream;
    std::vector<Stream> marks;
  };
  FakeUpstream upstream(config.can_map, 512 * kMiB, config.large_granule);
  FakeOrder order(0.3);
  UseMap uses;
  std::map<int64_t, Live> live;
  int64_t live_bytes = 0, refused = 0;
  MemoryPoolOptions options;
  options.quantum = config.quantum;
  options.cache_bytes = config.cache_bytes;
  options.segment_bytes = 256 * kMiB;
  Pool pool(upstream, order, options);
  // Would hang if the pool called out with its lock held.
  upstream.on_call = order.on_call = [&] { pool.statistics(); };
  upstream.on_unmap = [&](void* address, int64_t bytes) {
    const auto start = reinterpret_cast<int64_t>(address);
    uses.for_overlaps(start, start + bytes, [&](const UseMap::Uses& all) {
      for (const auto& [of, work] : all) EXPECT_TRUE(order.is_done_on_host(of, work));
    });
  };

  std::mt19937 random(7);
  const auto allocate = [&] {
    const int64_t bytes = random_size(random);
    const Stream on = stream(random() % 3);
    void* data = nullptr;
    try {
      data = pool.allocate(bytes, on);
    } catch (const MemoryError&) {
      ++refused;
      return;
    }
    const auto start = reinterpret_cast<int64_t>(data);
    ASSERT_EQ(start % config.quantum, 0);
    const auto next = live.lower_bound(start);
    ASSERT_TRUE(next == live.end() || start + bytes <= next->first) << "overlaps the next block";
    ASSERT_TRUE(next == live.begin() ||
                std::prev(next)->first + std::prev(next)->second.bytes <= start)
        << "overlaps the block before";
    uses.for_overlaps(start, start + bytes, [&](const UseMap::Uses& all) {
      for (const auto& [of, work] : all) {
        ASSERT_TRUE(order.is_ordered(of, work, on.handle)) << "reused while it was in use";
      }
    });
    uses.clear(start, start + bytes);
    live[start] = {bytes, on, {}};
    live_bytes += bytes;
    order.submit(on);
  };
  const auto free_one = [&] {
    auto victim = live.lower_bound(
        static_cast<int64_t>((int64_t{1} << 40) + static_cast<int64_t>(random() % (1 << 30))));
    if (victim == live.end()) victim = live.begin();
    auto [start, block] = *victim;
    live.erase(victim);
    live_bytes -= block.bytes;
    Stream last = block.stream;
    if (random() % 8 == 0) {
      // The program orders another stream behind the block's own and frees it there.
      last = stream(random() % 3);
      const StreamOrder::Event event = order.record(block.stream);
      if (event != nullptr) {
        order.make_wait(last, event);
        order.recycle(event);
      }
    }
    UseMap::Uses all{{last.handle, order.submit(last)}};
    for (const Stream& mark : block.marks) {
      if (!(mark == last)) all.emplace_back(mark.handle, order.submit(mark));
    }
    uses.add(start, start + block.bytes, std::move(all));
    pool.deallocate(reinterpret_cast<void*>(start), block.bytes, last);
  };

  const int count = operations(120'000);
  for (int i = 0; i < count && !HasFatalFailure(); ++i) {
    // Waves, so that memory grows, fragments and runs out in turn.
    const bool grows = (i / 4000) % 2 == 0;
    if (live.empty() || random() % 100 < (grows ? 70u : 35u)) {
      allocate();
    } else {
      free_one();
    }
    if (!live.empty() && random() % 16 == 0) {
      auto some = live.lower_bound((int64_t{1} << 40) +
                                   static_cast<int64_t>(random() % (int64_t{1} << 30)));
      if (some == live.end()) some = live.begin();
      const Stream mark = stream(random() % 4);
      pool.record_stream(reinterpret_cast<void*>(some->first), mark);
      some->second.marks.push_back(mark);
    }
    if (random() % 5000 == 0) pool.release_cached();
    if (i % 1000 == 0) {
      const Statistics s = pool.statistics();
      ASSERT_EQ(s.allocated_bytes, live_bytes);
      ASSERT_EQ(s.allocation_count - s.free_count, static_cast<int64_t>(live.size()));
      ASSERT_EQ(s.reserved_bytes, upstream.used());
      ASSERT_LE(s.allocated_bytes + s.pending_bytes + s.cached_bytes, s.reserved_bytes);
      ASSERT_GE(s.fragmentation, 0.0);
      ASSERT_LT(s.fragmentation, 1.0);
    }
  }
  EXPECT_GT(refused, 0) << "the program never ran out of memory, which it should";
  while (!live.empty()) free_one();
  pool.release_cached();
  // What was trimmed on a free with its work in flight is given back here.
  pool.release_cached();
  check_tiling(pool.snapshot());
  EXPECT_EQ(pool.statistics().allocated_bytes, 0);
  EXPECT_EQ(pool.statistics().cached_bytes, 0);
  EXPECT_EQ(pool.statistics().reserved_bytes, 0);
  EXPECT_EQ(upstream.used(), 0);
}

TEST_P(PoolFuzz, ManyThreadsWithLittleMemory) {
  const Config config = GetParam();
  FakeUpstream upstream(config.can_map, 192 * kMiB, config.large_granule);
  FakeOrder order(0.5);
  MemoryPoolOptions options;
  options.quantum = config.quantum;
  options.cache_bytes = config.cache_bytes;
  options.segment_bytes = 128 * kMiB;
  {
    Pool pool(upstream, order, options);
    std::atomic<int64_t> events = 0;
    pool.set_callback([&](const MemoryEvent&) {
      pool.statistics();
      ++events;
    });
    std::mutex mutex;
    std::map<int64_t, int64_t> live;  // start, end
    const auto enter = [&](int64_t start, int64_t end) {
      const std::lock_guard lock(mutex);
      const auto next = live.lower_bound(start);
      EXPECT_TRUE(next == live.end() || end <= next->first);
      EXPECT_TRUE(next == live.begin() || std::prev(next)->second <= start);
      live[start] = end;
    };
    const auto leave = [&](int64_t start) {
      const std::lock_guard lock(mutex);
      live.erase(start);
    };
    constexpr int kThreads = 4;
    const int count = operations(80'000) / kThreads;
    std::atomic<int64_t> refused = 0;
    const auto program = [&](int number) {
      std::mt19937 random(static_cast<unsigned>(number));
      const Stream on = stream(static_cast<uintptr_t>(number % 3));
      std::vector<std::pair<void*, int64_t>> mine;
      for (int i = 0; i < count; ++i) {
        if (mine.empty() || random() % 100 < 52) {
          const int64_t bytes = random_size(random);
          try {
            void* data = pool.allocate(bytes, on);
            const auto start = reinterpret_cast<int64_t>(data);
            enter(start, start + bytes);
            mine.emplace_back(data, bytes);
            if (random() % 8 == 0) {
              order.submit(stream(5));
              pool.record_stream(data, stream(5));
            }
            order.submit(on);
          } catch (const MemoryError&) {
            ++refused;
            for (const auto& [data, size] : mine) {
              leave(reinterpret_cast<int64_t>(data));
              pool.deallocate(data, size, on);
            }
            mine.clear();
          }
        } else {
          std::swap(mine[random() % mine.size()], mine.back());
          leave(reinterpret_cast<int64_t>(mine.back().first));
          pool.deallocate(mine.back().first, mine.back().second, on);
          mine.pop_back();
        }
        if (i % 512 == 0) pool.statistics();
      }
      for (const auto& [data, size] : mine) {
        leave(reinterpret_cast<int64_t>(data));
        pool.deallocate(data, size, on);
      }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(program, t);
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(events, 0);
    pool.release_cached();
    pool.release_cached();
    EXPECT_EQ(pool.statistics().allocated_bytes, 0);
    EXPECT_EQ(pool.statistics().allocation_count, pool.statistics().free_count);
    EXPECT_EQ(pool.statistics().pending_bytes, 0);
    EXPECT_EQ(check_tiling(pool.snapshot()), 0);
    EXPECT_EQ(upstream.used(), 0);
  }
}

const Config kConfigs[] = {
    {true, 512, kUnlimited, kGranule, "mapped"},
    {true, 64, 24 * kMiB, kGranule, "mapped_with_small_cache"},
    {true, 512, 24 * kMiB, 4 * kGranule, "mapped_in_two_granules"},
    {false, 512, kUnlimited, kGranule, "plain"},
    {false, 64, 0, kGranule, "plain_without_cache"},
};
INSTANTIATE_TEST_SUITE_P(Every, PoolFuzz, ::testing::ValuesIn(kConfigs),
                         [](const auto& config) { return std::string(config.param.name); });

}  // namespace
}  // namespace cuop::memory
