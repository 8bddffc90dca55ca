#include "cuop/backend/cpu/apart.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/execution.h"
#include "cuop/core/interrupt.h"

namespace cuop::backend {
namespace {

TEST(RunApart, AnotherThreadWorksAsTheCallerWould) {
  set_thread_count(3);
  Kernel kernel;
  kernel.type = KernelType::kTiled;
  kernel.tile = 17;
  const ExecutionScope scope(with_kernel(kernel));
  const ExecutionScope kept_in(with_cache_place({CachePlace::Kind::kOwn, "/there"}));
  int threads = 0;
  CachePlace place;
  Kernel asked;
  std::thread::id worker;
  run_apart([&] {
    threads = thread_count();
    asked = execution_options().kernel;
    place = execution_options().cache_place;
    worker = std::this_thread::get_id();
  });
  set_thread_count(0);
  EXPECT_EQ(threads, 3);
  EXPECT_EQ(asked, kernel);
  EXPECT_EQ(place.directory, "/there");
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(RunApart, WhatTheWorkThrowsIsThrown) {
  EXPECT_THROW(run_apart([] { throw std::runtime_error("broken"); }), std::runtime_error);
  EXPECT_NO_THROW(run_apart([] {}));
}

TEST(RunApart, CallsOfManyThreadsAndInsideEachOther) {
  std::atomic<int> total = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) run_apart([&] { run_apart([&] { ++total; }); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 200);
}

TEST(RunApart, AnInterruptedCallLeavesTheWorkWhatItOwns) {
  std::promise<void> library;  // returns when this is set
  std::atomic<bool> is_cancelled = false, was_cancelled = false;
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = owned;
  std::promise<void> begun;
  std::thread caller([&] {
    const CancelScope scope(is_cancelled);
    const auto work = [&, owned = std::move(owned), ends = library.get_future().share()] {
      begun.set_value();
      ends.wait();
      EXPECT_EQ(*owned, 7);
      try {
        check_interrupt();
      } catch (const Interrupted&) {
        was_cancelled = true;
      }
    };
    EXPECT_THROW(run_apart(work), Interrupted);
  });
  begun.get_future().wait();
  is_cancelled = true;
  caller.join();
  EXPECT_FALSE(watch.expired());
  library.set_value();
  while (!watch.expired()) std::this_thread::yield();
  EXPECT_TRUE(was_cancelled);
}

#if !defined(__SANITIZE_THREAD__)  // which lets a forked child start no threads
TEST(RunApart, AForkedChildHasThreadsOfItsOwn) {
  run_apart([] {});
  const pid_t child = fork();
  if (child == 0) {
    bool has_run = false;
    run_apart([&] { has_run = true; });
    _exit(has_run ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace cuop::backend
