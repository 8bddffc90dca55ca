// A compilation whose caller waits, or leaves before it ends.
#include "cuop/jit/compile_attempt.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>

namespace cuop::jit {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

void not_late(const CompiledKernel&) { ADD_FAILURE() << "the caller had not left"; }

TEST(CompileAttempt, WhatComesInTimeIsTheCallers) {
  const auto attempt = std::make_shared<CompileAttempt>();
  attempt->start([] { return CompiledKernel{"image", "log", 2.0}; }, not_late);
  const auto compiled = attempt->wait(Clock::now() + 60s);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->image, "image");
  EXPECT_EQ(compiled->log, "log");
}

TEST(CompileAttempt, AnErrorInTimeIsTheCallers) {
  const auto attempt = std::make_shared<CompileAttempt>();
  attempt->start([]() -> CompiledKernel { throw std::runtime_error("no such header"); }, not_late);
  EXPECT_THROW(attempt->wait(Clock::now() + 60s), std::runtime_error);
}

TEST(CompileAttempt, WhatComesAfterTheCallerLeftIsKept) {
  std::promise<void> go_on;
  std::promise<std::string> late;
  const auto attempt = std::make_shared<CompileAttempt>();
  attempt->start(
      [&] {
        go_on.get_future().wait();
        return CompiledKernel{"image", "", 2.0};
      },
      [&](const CompiledKernel& compiled) { late.set_value(compiled.image); });
  EXPECT_FALSE(attempt->wait(Clock::now()));
  go_on.set_value();
  auto image = late.get_future();
  ASSERT_EQ(image.wait_for(60s), std::future_status::ready) << "it was thrown away";
  EXPECT_EQ(image.get(), "image");
}

}  // namespace
}  // namespace cuop::jit
