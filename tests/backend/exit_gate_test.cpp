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
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"

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

/// Stays inside for a moment, on a thread of its own.
class Inside {
 public:
  Inside() {
    while (!has_come_) std::this_thread::yield();
  }
  ~Inside() { thread_.join(); }
  bool has_left() const { return has_left_; }

 private:
  std::atomic<bool> has_come_ = false, has_left_ = false;
  std::thread thread_{[this] {
    const GatedCall call;
    has_come_ = true;
    std::this_thread::sleep_for(milliseconds(100));
    has_left_ = true;
  }};
};

/// ThreadSanitizer ends a child that starts a thread and misses the parent's, and a child has the
/// locks of AddressSanitizer's memory as other threads held them.
class ExitGateForks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  }
};

TEST_F(ExitGateForks, WaitForCallsUnderWay) {
  const Inside inside;
  EXPECT_TRUE(test::ends_in_fork([&] {
    if (!inside.has_left()) _exit(1);
    await_gated_calls();  // nobody is inside here
  }));
  EXPECT_TRUE(inside.has_left());
  const GatedCall later;  // it is open again
}

TEST_F(ExitGateForks, FromWithinACallDoNotWaitForIt) {
  const Clock::time_point begin = Clock::now();
  const auto in_child = [] {
    const Inside other;
    const Clock::time_point start = Clock::now();
    await_gated_calls();
    if (!other.has_left() || Clock::now() - start > std::chrono::seconds(5)) _exit(1);
  };
  {
    const GatedCall call;
    const GatedCall nested(GatedCall::Await::kAtForkAlone);
    EXPECT_TRUE(test::ends_in_fork([] { const GatedCall inner; }));
  }
  EXPECT_TRUE(test::ends_in_fork(in_child));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
}

TEST(ExitGate, DISABLED_ForksAmidProducts) {
  set_thread_count(2);
  const Tensor a = ones({300, 300});
  matmul(a, a);
  constexpr int kThreads = 2;
  std::atomic<int> done[kThreads] = {};
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (auto& count : done) {
    threads.emplace_back([&] {
      set_thread_count(2);
      for (; !is_over; ++count) matmul(a, a);
    });
  }
  for (int i = 0; i < 100; ++i) {
    const int before[kThreads] = {done[0], done[1]};
    EXPECT_TRUE(test::ends_in_fork([&] {
      if (i % 20 == 0) matmul(a, a);
    }));
    for (int t = 0; t < kThreads; ++t) {
      while (done[t] == before[t]) std::this_thread::sleep_for(milliseconds(1));
    }
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExitGateForks, ProductsOfOtherThreadsGoOn) {
  for (const char* library_threads : {"1", "2"}) {
    EXPECT_EQ(test::run_in_process(
                  "ExitGate.DISABLED_ForksAmidProducts",
                  std::string("OPENBLAS_NUM_THREADS=") + library_threads + " timeout 100"),
              0)
        << library_threads;
  }
}

/// y of ones: each sum has 72 terms within the image. By the library where it is there, as it takes
/// so many channels.
void convolve(int64_t size) {
  const Tensor y = conv2d(ones({1, 8, size, size}), ones({4, 8, 3, 3}));
  if (*y.data<float>() != 72.0F) _exit(2);
}

TEST(ExitGate, DISABLED_ForkedChildrenConvolve) {
  set_thread_count(2);
  constexpr int64_t kSmall = 32, kLarge = 1500;
  for (const int64_t size : {kSmall, kLarge}) {
    convolve(size);
    EXPECT_TRUE(test::ends_in_fork([&] {
      for (const int64_t again : {kSmall, size}) convolve(again);
      std::thread other([&] {
        set_thread_count(2);
        convolve(size);
      });
      other.join();
      if (!test::ends_in_fork([&] { convolve(size); })) _exit(3);
    })) << size;
    convolve(size);
  }
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    set_thread_count(2);
    for (int64_t size = kSmall; !is_over; ++size) convolve(size);  // prepared anew each time
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(test::ends_in_fork([&] { convolve(kSmall + i); }));
  is_over = true;
  other.join();
}

TEST_F(ExitGateForks, ChildrenConvolve) {
  EXPECT_EQ(test::run_in_process("ExitGate.DISABLED_ForkedChildrenConvolve", "timeout 100"), 0);
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
