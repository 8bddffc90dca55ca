#include "cuop/memory/limited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "tests/error_of.h"

namespace cuop::memory {
namespace {

TEST(LimitedResource, RefusesWhatIsBeyondItsLimit) {
  const auto limited = make_limited(kCpu, 4096);
  const ResourceScope scope(*limited);
  const Tensor first = zeros({512});  // 2048 bytes
  EXPECT_EQ(limited->live(), 2048);
  EXPECT_THAT(test::error_of<MemoryError>([] { zeros({513}); }),
              ::testing::HasSubstr("for work that may use 4 KiB and uses 2 KiB"));
  EXPECT_EQ(limited->live(), 2048);
  { const Tensor second = zeros({512}); }
  EXPECT_EQ(limited->live(), 2048);
  EXPECT_EQ(limited->peak(), 4096);
  EXPECT_EQ(limited->statistics().capacity_bytes, 4096);
  EXPECT_EQ(limited->statistics().out_of_memory_count, 1);
  limited->reset_peak();
  EXPECT_EQ(limited->statistics().peak_allocated_bytes, 2048);
}

TEST(LimitedResource, CountsTheMemoryOfAllThreads) {
  const auto limited = make_limited(kCpu, 1 << 20);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const ResourceScope scope(*limited);
      for (int k = 0; k < 100; ++k) {
        const Tensor x = zeros({1 + k % 7 * 1000});
        EXPECT_LE(limited->live(), 1 << 20);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limited->live(), 0);
}

TEST(LimitedResource, ATensorMayOutliveItsOwner) {
  Tensor kept;
  {
    const auto limited = make_limited(kCpu, 4096);
    const ResourceScope scope(*limited);
    kept = ones({100});
  }
  EXPECT_EQ(kept.data<float>()[99], 1.0f);
  kept = {};
  make_limited(kCpu, 1);  // lets go of what is empty
}

}  // namespace
}  // namespace cuop::memory
