#include "cuop/memory/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.h"

namespace cuop::memory {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr DeviceMemory kMachine{20 * kGiB, 32 * kGiB};

class ControlGroups : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const auto path = std::filesystem::path(root()) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root() const { return folder_.path().string(); }
  void expect(int64_t free, int64_t total) {
    const DeviceMemory memory = within_control_groups(kMachine, root());
    EXPECT_EQ(memory.free, free);
    EXPECT_EQ(memory.total, total);
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(ControlGroups, TheMachineWhereThereAreNone) {
  expect(kMachine.free, kMachine.total);
  write("proc/self/cgroup", "0::/");
  expect(kMachine.free, kMachine.total);
  write("sys/fs/cgroup/memory.max", "max");
  expect(kMachine.free, kMachine.total);
}

TEST_F(ControlGroups, TheLimitOfTheContainersTop) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", std::to_string(4 * kGiB));
  write("sys/fs/cgroup/memory.current", std::to_string(3 * kGiB));
  expect(kGiB, 4 * kGiB);
  write("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file " + std::to_string(2 * kGiB));
  expect(3 * kGiB, 4 * kGiB);  // caches that were not used for long would be dropped
}

TEST_F(ControlGroups, TheSmallestLimitOnTheWayUp) {
  write("proc/self/cgroup", "0::/user.slice/job.scope");
  write("sys/fs/cgroup/user.slice/memory.max", std::to_string(2 * kGiB));
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", std::to_string(8 * kGiB));
  expect(2 * kGiB, 2 * kGiB);
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", std::to_string(kGiB));
  expect(kGiB, kGiB);
  write("sys/fs/cgroup/user.slice/job.scope/memory.current", std::to_string(3 * kGiB));
  expect(0, kGiB);
}

TEST_F(ControlGroups, TheMemoryControllerOfVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(6 * kGiB));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(kGiB));
  expect(5 * kGiB, 6 * kGiB);  // in the container the host's path is not there
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712");
  expect(5 * kGiB, 6 * kGiB);
}

TEST_F(ControlGroups, WhatCannotBeReadIsNoLimit) {
  for (const char* text : {"", "::", "0:", "x", "0::job", "4:memory"}) {
    write("proc/self/cgroup", text);
    expect(kMachine.free, kMachine.total);
  }
}

TEST_F(ControlGroups, TheProcessMayUseNoMoreThanItsGroup) {
  const DeviceMemory outside = host_memory_now(root());
  constexpr int64_t kLimit = int64_t{48} << 20, kUsed = int64_t{40} << 20;
  ASSERT_GT(outside.total, kLimit);
  write("proc/self/cgroup", "0::/job");
  write("sys/fs/cgroup/job/memory.max", std::to_string(kLimit));
  write("sys/fs/cgroup/job/memory.current", std::to_string(kUsed));
  const DeviceMemory inside = host_memory_now(root());
  EXPECT_EQ(inside.total, kLimit);
  EXPECT_LE(inside.free, kLimit - kUsed);
}

TEST(HostMemory, IsPositiveAndTheSameEveryTime) {
  const DeviceMemory first = host_memory(), second = host_memory();
  EXPECT_GT(first.total, 0);
  EXPECT_EQ(first.total, second.total);
  EXPECT_LE(first.free, first.total);
  EXPECT_GT(address_space_limit(), 0);
}

}  // namespace
}  // namespace cuop::memory
