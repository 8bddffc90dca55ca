#include "cuop/backend/cpu/blas_room.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "cuop/core/error.h"

namespace cuop::backend::blas {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t addresses_in_use() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void leave_addresses(int64_t bytes) {
  const auto most = static_cast<rlim_t>(addresses_in_use() + bytes);
  const rlimit limit{most, most};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

/// In a process of its own, which has few addresses from then on and no earlier test in it: the
/// first call of the library decides whether addresses count.
template <class Work>
void expect_in_child(int64_t bytes, const Work& work) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        leave_addresses(bytes);
        work();
        _exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

bool is_refused() {
  try {
    const BufferRoom room;
    return false;
  } catch (const MemoryError&) {
    return true;
  }
}

TEST(BlasRoomDeathTest, TheFirstCallIsRefusedWhereThereIsNoRoom) {
  expect_in_child(100 * kMiB, [] {
    EXPECT_TRUE(has_limited_addresses());
    EXPECT_TRUE(is_refused());
    EXPECT_THROW(check_room_to_open(), MemoryError);
  });
  expect_in_child(250 * kMiB, [] { EXPECT_FALSE(is_refused()); });
  expect_in_child(400 * kMiB, [] { EXPECT_NO_THROW(check_room_to_open()); });
}

TEST(BlasRoomDeathTest, WhatACallMayStillTakeIsNotPromisedTwice) {
  // Room for one buffer, which the first call has yet to take when a second one begins.
  expect_in_child(300 * kMiB, [] {
    int inside = 0;
    {
      const BufferRoom first;
      alarm(1);  // the second one waits for ever: only the first could end that
      std::signal(SIGALRM, [](int) { _exit(0); });
      const BufferRoom second;
      ++inside;
    }
    EXPECT_EQ(inside, 0) << "both were let in";
  });
}

}  // namespace
}  // namespace cuop::backend::blas
