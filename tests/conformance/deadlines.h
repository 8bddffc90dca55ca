// Deadlines of cases about ranks that fail or are late.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::conformance {

inline constexpr double kShort = 0.3;  // seconds
inline constexpr double kLong = 20.0;  // seconds: a deadline that no passing test reaches

/// A case's own deadline, undone at its end.
class Timeout {
 public:
  Timeout(Rank comm, double seconds) : comm_(*comm), before_(comm->timeout()) {
    comm_.set_timeout(seconds);
  }
  ~Timeout() { comm_.set_timeout(before_); }

 private:
  Communicator& comm_;
  double before_;
};

inline void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Returns when the others have given up waiting, however long a busy machine takes for that.
inline void come_too_late(Rank comm) {
  pause(1.5 * kShort);
  for (double waited = 0; comm->failure().empty() && waited < kLong; waited += 0.05) {
    pause(0.05);
  }
}

/// All ranks come back from a failure, at their own pace, and work again.
inline void recover_and_check(Rank comm) {
  comm->set_timeout(kLong);
  EXPECT_NE(comm->failure(), "");
  EXPECT_TRUE(comm->is_failure_reported());
  comm->recover();
  EXPECT_EQ(comm->failure(), "");
  EXPECT_FALSE(comm->is_failure_reported());
  int64_t sum = comm->rank();
  comm->all_reduce(&sum, &sum, 1, DType::kInt64, ReduceKind::kSum);
  EXPECT_EQ(sum, static_cast<int64_t>(comm->size()) * (comm->size() - 1) / 2);
}

}  // namespace cuop::dist::conformance
