#include "cuop/core/fork_mutex.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/core/interruptible.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"

namespace cuop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

/// Sanitizers do not survive a fork amid other threads: tests/backend/exit_gate_test.cpp says why.
class ForkMutexes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  }
};

/// Does the work on a thread of its own; made when that has called its argument.
class Beside {
 public:
  explicit Beside(std::function<void(const std::function<void()>& have_begun)> work)
      : thread_([this, work = std::move(work)] { work([this] { has_begun_ = true; }); }) {
    while (!has_begun_) std::this_thread::yield();
  }
  ~Beside() { thread_.join(); }

 private:
  std::atomic<bool> has_begun_ = false;
  std::thread thread_;
};

TEST_F(ForkMutexes, AreFreeInTheChildAndGuardWhatIsWhole) {
  ForkMutex mutex;
  int first = 0, second = 0;
  const Beside other([&](const auto& have_begun) {
    const std::lock_guard lock(mutex);
    first = 1;
    have_begun();
    std::this_thread::sleep_for(milliseconds(100));
    second = 1;
  });
  EXPECT_TRUE(test::ends_in_fork([&] {
    const std::lock_guard lock(mutex);
    if (first != second || mutex.was_left_behind()) _exit(1);
  }));
  const std::lock_guard lock(mutex);  // it is free here too
}

TEST_F(ForkMutexes, OfTheThreadThatForksStayItsOwn) {
  ForkMutex mutex;
  const Clock::time_point begin = Clock::now();
  mutex.lock();
  EXPECT_TRUE(test::ends_in_fork([&] {
    if (!holds_up_forks()) _exit(1);
    std::atomic<bool> has_it = false;
    std::thread other([&] {
      const std::lock_guard lock(mutex);
      has_it = true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    if (has_it) _exit(2);
    mutex.unlock();
    other.join();
    if (holds_up_forks() || mutex.was_left_behind()) _exit(3);
  }));
  mutex.unlock();
  EXPECT_LT(Clock::now() - begin, seconds(4));  // nobody has waited for itself
}

TEST_F(ForkMutexes, AreTakenInNoOrderThatOthersMustKeep) {
  std::atomic<bool> is_over = false;
  std::vector<std::unique_ptr<ForkMutex>> mutexes;
  for (int i = 0; i < 8; ++i) mutexes.push_back(std::make_unique<ForkMutex>());
  const auto nest = [&](size_t at) {
    while (!is_over) {
      const std::lock_guard outer(*mutexes[at]);
      std::this_thread::sleep_for(milliseconds(1));
      ForkMutex made;  // enters the list amid it
      const std::lock_guard both(*mutexes[at + 1]), third(made);
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  std::thread up([&] { nest(0); }), beside([&] { nest(4); });
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(test::ends_in_fork([&] {
      for (const auto& mutex : mutexes) {
        const std::lock_guard lock(*mutex);
        if (mutex->was_left_behind()) _exit(1);
      }
    }));
  }
  EXPECT_LT(Clock::now() - begin, seconds(60));
  is_over = true;
  up.join();
  beside.join();
}

TEST_F(ForkMutexes, MayBeHeldAtTheGateOfLibraries) {
  ForkMutex mutex;
  std::atomic<bool> is_forking = false;
  const Beside other([&](const auto& have_begun) {
    const std::lock_guard lock(mutex);
    have_begun();
    while (!is_forking) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(100));  // the fork has closed the gate
    const backend::GatedCall call;
  });
  const backend::GatedCall own;  // so that the gate has its steps
  const Clock::time_point begin = Clock::now();
  is_forking = true;
  EXPECT_TRUE(test::ends_in_fork([&] {
    const std::lock_guard lock(mutex);
    if (mutex.was_left_behind()) _exit(1);
  }));
  EXPECT_LT(Clock::now() - begin, seconds(4));
}

TEST_F(ForkMutexes, TellThatAForkCouldNotWait) {
  ForkMutex mutex;
  std::atomic<bool> has_forked = false;
  const Beside other([&](const auto& have_begun) {
    const std::lock_guard lock(mutex);
    have_begun();
    while (!has_forked) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_TRUE(test::ends_in_fork([&] {
    const std::lock_guard lock(mutex);
    if (!mutex.was_left_behind()) _exit(1);
  }));
  EXPECT_FALSE(mutex.was_left_behind());
  has_forked = true;
}

TEST_F(ForkMutexes, OfLongWorkAreFreeInTheChildAtOnce) {
  InterruptibleMutex mutex("long work");
  std::atomic<bool> has_forked = false;
  const Beside other([&](const auto& have_begun) {
    const std::lock_guard lock(mutex);
    have_begun();
    while (!has_forked) std::this_thread::sleep_for(milliseconds(1));
  });
  const Beside waiting([&](const auto& have_begun) {
    have_begun();
    const std::lock_guard lock(mutex);
  });
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(test::ends_in_fork([&] {
    for (int i = 0; i < 3; ++i) const std::lock_guard lock(mutex);
  }));
  EXPECT_LT(Clock::now() - begin, seconds(4));
  has_forked = true;
}

}  // namespace
}  // namespace cuop
