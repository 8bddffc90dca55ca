#include "cuop/core/deadline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace cuop {
namespace {

TEST(Deadline, WithoutAScopeThereIsNone) { EXPECT_TRUE(std::isinf(seconds_left())); }

TEST(Deadline, IsTheThreadsAndGoesWithItsScope) {
  {
    const DeadlineScope scope(3600.0);
    EXPECT_LE(seconds_left(), 3600.0);
    EXPECT_GT(seconds_left(), 3000.0);
    std::thread([] { EXPECT_TRUE(std::isinf(seconds_left())); }).join();
  }
  EXPECT_TRUE(std::isinf(seconds_left()));
}

TEST(Deadline, AnInnerScopeShortensItAndNeverProlongsIt) {
  const DeadlineScope outer(3600.0);
  {
    const DeadlineScope inner(60.0);
    EXPECT_LE(seconds_left(), 60.0);
  }
  EXPECT_GT(seconds_left(), 60.0);
  const DeadlineScope longer(std::numeric_limits<double>::infinity());
  EXPECT_LE(seconds_left(), 3600.0);
}

TEST(Deadline, NoTimeIsNeverLessThanNone) {
  const DeadlineScope scope(-5.0);
  EXPECT_EQ(seconds_left(), 0.0);
}

}  // namespace
}  // namespace cuop
