// What every memory resource must do, run over each of them on host memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/memory/host.h"
#include "cuop/memory/host_upstream.h"
#include "cuop/memory/pool.h"
#include "tests/error_of.h"

namespace cuop::memory {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// A resource and what it stands on.
struct Owned {
  std::shared_ptr<Upstream> upstream;
  std::shared_ptr<StreamOrder> order = std::make_shared<ImmediateOrder>();
  std::shared_ptr<MemoryResource> resource;
};

template <class HostUpstream>
Owned pool_over() {
  Owned owned;
  owned.upstream = std::make_shared<HostUpstream>();
  owned.resource = std::make_shared<Pool>(*owned.upstream, *owned.order);
  return owned;
}

struct ResourceKind {
  const char* name;
  Owned (*make)();
};

class Resource : public ::testing::TestWithParam<ResourceKind> {
 protected:
  Owned owned_ = GetParam().make();
  MemoryResource& resource_ = *owned_.resource;
};

TEST_P(Resource, ServesEverySizeAlignedAndWritable) {
  std::vector<std::pair<char*, int64_t>> blocks;
  for (const int64_t bytes : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{1000},
                              int64_t{65536}, int64_t{65537}, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB}) {
    auto* data = static_cast<char*>(resource_.allocate(bytes, {}));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kAlignment, 0u);
    std::memset(data, static_cast<int>(blocks.size()) + 1, static_cast<size_t>(bytes));
    blocks.emplace_back(data, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first[0], static_cast<char>(i + 1));
    EXPECT_EQ(blocks[i].first[blocks[i].second - 1], static_cast<char>(i + 1));
    resource_.deallocate(blocks[i].first, blocks[i].second, {});
  }
  EXPECT_EQ(resource_.statistics().allocated_bytes, 0);
}

TEST_P(Resource, NothingIsNull) {
  EXPECT_EQ(resource_.allocate(0, {}), nullptr);
  resource_.deallocate(nullptr, 0, {});
  EXPECT_EQ(resource_.statistics().allocation_count, resource_.statistics().free_count);
}

TEST_P(Resource, CountsWhatLives) {
  void* a = resource_.allocate(100, {});
  void* b = resource_.allocate(8 * kMiB, {});
  EXPECT_EQ(resource_.statistics().allocated_bytes, 100 + 8 * kMiB);
  EXPECT_GE(resource_.statistics().reserved_bytes, 100 + 8 * kMiB);
  resource_.deallocate(b, 8 * kMiB, {});
  EXPECT_EQ(resource_.statistics().allocated_bytes, 100);
  EXPECT_EQ(resource_.statistics().peak_allocated_bytes, 100 + 8 * kMiB);
  resource_.reset_peak();
  EXPECT_EQ(resource_.statistics().peak_allocated_bytes, 100);
  resource_.deallocate(a, 100, {});
  EXPECT_EQ(resource_.statistics().allocation_count, 2);
  EXPECT_EQ(resource_.statistics().free_count, 2);
}

TEST_P(Resource, PeakSeesSmallBlocksToo) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(resource_.allocate(1000, {}));
  for (void* block : blocks) resource_.deallocate(block, 1000, {});
  for (int i = 0; i < 10; ++i) resource_.deallocate(resource_.allocate(1000, {}), 1000, {});
  EXPECT_EQ(resource_.statistics().peak_allocated_bytes, 100'000);
  EXPECT_EQ(resource_.statistics().allocated_bytes, 0);
}

TEST_P(Resource, RefusesWhatTheMachineDoesNotHaveAndGoesOn) {
  for (const int64_t huge : {int64_t{1} << 50, std::numeric_limits<int64_t>::max()}) {
    const auto error = test::caught<MemoryError>([&] { resource_.allocate(huge, {}); });
    EXPECT_EQ(error.figures().requested, huge);
    EXPECT_EQ(error.figures().live, 0);
  }
  EXPECT_EQ(resource_.statistics().out_of_memory_count, 2);
  EXPECT_THROW(resource_.allocate(-1, {}), MemoryError);
  void* small = resource_.allocate(64, {});
  EXPECT_NE(small, nullptr);
  resource_.deallocate(small, 64, {});
}

TEST_P(Resource, ReleasingKeepsLiveMemory) {
  auto* kept = static_cast<char*>(resource_.allocate(3 * kMiB, {}));
  std::memset(kept, 7, 3 * kMiB);
  void* gone = resource_.allocate(16 * kMiB, {});
  resource_.deallocate(gone, 16 * kMiB, {});
  EXPECT_GE(resource_.release_cached(), 0);
  EXPECT_EQ(kept[0], 7);
  EXPECT_EQ(kept[3 * kMiB - 1], 7);
  void* again = resource_.allocate(16 * kMiB, {});
  std::memset(again, 1, 16 * kMiB);
  resource_.deallocate(again, 16 * kMiB, {});
  resource_.deallocate(kept, 3 * kMiB, {});
}

TEST_P(Resource, BlocksNeverOverlapWhicheverThreadFreesThem) {
  // Each thread writes its mark over whole blocks, checks it later, and frees blocks of its
  // neighbour.
  constexpr int kThreads = 4, kRounds = 300;
  std::vector<std::vector<std::pair<unsigned char*, int64_t>>> handed(kThreads);
  std::vector<std::mutex> mutexes(kThreads);
  std::atomic<int> torn = 0;
  const auto check_and_free = [&](std::pair<unsigned char*, int64_t> block) {
    const unsigned char mark = block.first[0];
    for (int64_t i = 0; i < block.second; i += 61) torn += block.first[i] != mark;
    resource_.deallocate(block.first, block.second, {});
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        const int64_t bytes =
            1 + static_cast<int64_t>(random() % (i % 50 == 0 ? 3'000'000 : 5'000));
        auto* data = static_cast<unsigned char*>(resource_.allocate(bytes, {}));
        std::memset(data, static_cast<int>(random() % 256), static_cast<size_t>(bytes));
        {
          const std::lock_guard lock(mutexes[static_cast<size_t>((t + 1) % kThreads)]);
          handed[static_cast<size_t>((t + 1) % kThreads)].emplace_back(data, bytes);
        }
        std::vector<std::pair<unsigned char*, int64_t>> mine;
        if (i % 7 == 0) {
          const std::lock_guard lock(mutexes[static_cast<size_t>(t)]);
          mine.swap(handed[static_cast<size_t>(t)]);
        }
        for (const auto& block : mine) check_and_free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& rest : handed) {
    for (const auto& block : rest) check_and_free(block);
  }
  EXPECT_EQ(torn, 0);
  const Statistics s = resource_.statistics();
  EXPECT_EQ(s.allocated_bytes, 0);
  EXPECT_EQ(s.allocation_count, kThreads * kRounds);
  EXPECT_EQ(s.free_count, kThreads * kRounds);
}

const ResourceKind kKinds[] = {
    {"host",
     [] {
       Owned owned;
       owned.resource = std::make_shared<HostResource>();
       return owned;
     }},
    {"pool_mapped", &pool_over<MappedHostUpstream>},
    {"pool_plain", &pool_over<PlainHostUpstream>},
};
INSTANTIATE_TEST_SUITE_P(Every, Resource, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace cuop::memory
