#include "cuop/memory/host.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "tests/error_of.h"

namespace cuop::memory {
namespace {

TEST(HostResource, CountsWhatLives) {
  HostResource host;
  void* a = host.allocate(100, {});
  void* b = host.allocate(int64_t{8} << 20, {});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % kAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % kAlignment, 0u);
  EXPECT_EQ(host.statistics().allocated_bytes, 100 + (int64_t{8} << 20));
  host.deallocate(b, int64_t{8} << 20, {});
  EXPECT_EQ(host.statistics().allocated_bytes, 100);
  EXPECT_EQ(host.statistics().peak_allocated_bytes, 100 + (int64_t{8} << 20));
  host.reset_peak();
  EXPECT_EQ(host.statistics().peak_allocated_bytes, 100);
  host.deallocate(a, 100, {});
  EXPECT_EQ(host.statistics().allocation_count, host.statistics().free_count);
  EXPECT_EQ(host.allocate(0, {}), nullptr);
}

TEST(HostResource, RefusesWhatTheMachineDoesNotHaveAndGoesOn) {
  HostResource host;
  const int64_t huge = int64_t{1} << 50;
  const auto error = test::caught<MemoryError>([&] { host.allocate(huge, {}); });
  EXPECT_EQ(error.figures().requested, huge);
  EXPECT_EQ(error.figures().live, 0);
  EXPECT_EQ(host.statistics().out_of_memory_count, 1);
  void* small = host.allocate(64, {});
  EXPECT_NE(small, nullptr);
  host.deallocate(small, 64, {});
}

TEST(HostResource, CountsFromManyThreads) {
  HostResource host;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&host] {
      for (int i = 1; i < 1000; ++i) host.deallocate(host.allocate(i, {}), i, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host.statistics().allocated_bytes, 0);
  EXPECT_EQ(host.statistics().allocation_count, 4 * 999);
}

TEST(CurrentResource, StorageReturnsToTheResourceItCameFrom) {
  HostResource mine;
  MemoryResource* before = set_current_resource(kCpu, &mine);
  auto storage = allocate_storage(1000, kCpu);
  set_current_resource(kCpu, before);
  EXPECT_EQ(mine.statistics().allocated_bytes, 1000);
  storage.reset();
  EXPECT_EQ(mine.statistics().allocated_bytes, 0);
  EXPECT_THROW(allocate_storage(8, Device{DeviceType::kCuda, kMaxDevices - 1}), DeviceError);
}

}  // namespace
}  // namespace cuop::memory
