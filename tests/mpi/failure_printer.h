// What the ranks of a run print when each of them runs the same tests.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace cuop::dist::test {

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

}  // namespace cuop::dist::test
