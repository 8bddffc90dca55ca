#include "cuop/backend/cpu/exit_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace cuop::backend {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(ExitGate, WaitsForCallsUnderWay) {
  std::atomic<bool> is_inside = false;
  std::atomic<bool> has_left = false;
  std::thread caller([&] {
    const GatedCall call;
    is_inside = true;
    std::this_thread::sleep_for(milliseconds(100));
    has_left = true;
  });
  while (!is_inside) std::this_thread::yield();
  await_gated_calls();
  EXPECT_TRUE(has_left);
  caller.join();
}

TEST(ExitGate, DoesNotWaitForLaterCalls) {
  std::atomic<bool> is_over = false;
  std::atomic<int> inside = 0;
  // Each calls again before the other is out: somebody is inside all the time.
  const auto call_on = [&] {
    while (!is_over) {
      const GatedCall call;
      ++inside;
      const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
      while (inside < 2 && !is_over && Clock::now() < end) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(2));
      --inside;
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back(call_on);
  while (inside < 2) std::this_thread::yield();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 3; ++i) await_gated_calls();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  is_over = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace cuop::backend
