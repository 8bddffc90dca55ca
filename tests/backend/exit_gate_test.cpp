#include "cuop/backend/cpu/exit_gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/own_process.h"

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

constexpr int kMultiplied = 7;

/// Is destroyed after the gate is closed, as it is there before the first call.
struct MultipliesAtTheEnd {
  ~MultipliesAtTheEnd() {
    const Tensor a = ones({2000, 2000});
    matmul(a, a);
    _exit(kMultiplied);
  }
};

TEST(ExitGate, DISABLED_LeavesAStaticObject) {
  set_thread_count(2);
  static const MultipliesAtTheEnd late;
  (void)late;
  const Tensor a = ones({10, 10});
  matmul(a, a);
}

/// Its products would be shared with threads that stay at the gate.
TEST(ExitGate, StaticObjectsMultiplyAtTheEnd) {
  for (const char* library_threads : {"1", "2"}) {
    const int status = test::run_in_process(
        "ExitGate.DISABLED_LeavesAStaticObject",
        std::string("OPENBLAS_NUM_THREADS=") + library_threads + " timeout 60");
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), kMultiplied) << library_threads;
  }
}

}  // namespace
}  // namespace cuop::backend
