// A run in which each rank is a process that runs the same tests: what they print, how they go on
// after a test that failed, and how they end.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <string>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::rank_test {

/// Rank 0 prints as usual, the others only what went wrong.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestStart(const testing::TestInfo& info) override { test_ = info.name(); }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* file = result.file_name();
    std::cerr << "rank " << rank_ << ": " << test_ << " " << (file != nullptr ? file : "") << ":"
              << result.line_number() << "\n"
              << result.message() << std::endl;
  }

 private:
  int rank_;
  std::string test_;
};

inline void print_failures_of(int rank) {
  if (rank == 0) return;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(rank));
}

/// Runs cases on the ranks of `comm`, where a failed one must not fail the next.
inline conformance::Runner runner_on(conformance::Rank comm) {
  return [comm](int, const std::function<void(conformance::Rank)>& body) {
    if (!comm->failure().empty()) comm->recover();
    body(comm);
  };
}

/// Runs all registered tests; on every rank 1 when some rank's have failed, else 0.
inline int run_same_tests(conformance::Rank comm) {
  print_failures_of(comm->rank());
  int64_t failed = RUN_ALL_TESTS();
  if (!comm->failure().empty()) comm->recover();
  comm->all_reduce(&failed, &failed, 1, DType::kInt64, ReduceKind::kMax);
  return static_cast<int>(failed);
}

}  // namespace cuop::dist::rank_test
