#include "cuop/backend/cpu/apart.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/execution.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/spin.h"

namespace cuop::backend {

namespace {

using Clock = std::chrono::steady_clock;

/// One piece of work, shared by the caller and the thread that does it.
struct ApartJob {
  std::function<void()> work;
  int threads = thread_count();
  ExecutionOptions options = execution_options();
  std::atomic<bool> is_cancelled = false;
  std::atomic<bool> has_ended = false;
  std::mutex mutex;
  std::condition_variable ended;
  std::exception_ptr error;

  void run() {
    set_thread_count(threads);
    try {
      const ExecutionScope scope(options);
      const CancelScope cancel(is_cancelled);
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;  // what it owns goes before the caller hears of the end
  }

  void tell() {
    {
      const std::lock_guard lock(mutex);
      has_ended = true;
    }
    ended.notify_one();
  }

  void wait(std::chrono::microseconds awake) {
    spin_until([this] { return has_ended.load(); }, awake);
    std::unique_lock lock(mutex);
    try {
      wait_interruptibly(ended, lock, Clock::time_point::max(),
                         [this] { return has_ended.load(); });
    } catch (...) {
      is_cancelled = true;
      throw;
    }
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
};

/// A thread that does one job after the other. A library may keep threads of its own for each
/// thread that calls it, so those that exist are used again.
class Helper {
 public:
  void give(std::shared_ptr<ApartJob> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      has_job_ = true;
    }
    given_.notify_one();
  }

  std::shared_ptr<ApartJob> take() {
    spin_until([this] { return has_job_.load(); });
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return has_job_.load(); });
    has_job_ = false;
    return std::move(job_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::shared_ptr<ApartJob> job_;
  std::atomic<bool> has_job_ = false;
};

struct IdleHelpers {
  std::mutex mutex;
  std::vector<Helper*> all;
};

IdleHelpers*& idle_helpers() {
  static auto* idle = new IdleHelpers;  // its threads live until the process ends
  return idle;
}

void serve(Helper* helper) {
  for (;;) {
    const std::shared_ptr<ApartJob> job = helper->take();
    job->run();
    {
      IdleHelpers& idle = *idle_helpers();
      const std::lock_guard lock(idle.mutex);
      idle.all.push_back(helper);
    }
    job->tell();
  }
}

/// Throws std::system_error when the system has no thread left.
Helper* idle_helper() {
  // A forked child has none of the threads.
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { idle_helpers() = new IdleHelpers; });
    return true;
  }();
  (void)registered;
  IdleHelpers& idle = *idle_helpers();
  {
    const std::lock_guard lock(idle.mutex);
    if (!idle.all.empty()) {
      Helper* const helper = idle.all.back();
      idle.all.pop_back();
      return helper;
    }
    idle.all.reserve(idle.all.capacity() + 1);  // so that coming back cannot fail
  }
  auto helper = std::make_unique<Helper>();
  std::thread(&serve, helper.get()).detach();
  return helper.release();
}

}  // namespace

void run_apart(std::function<void()> work, std::chrono::microseconds awake) {
  if (is_ending_thread()) return work();
  const auto job = std::make_shared<ApartJob>();
  job->work = std::move(work);
  Helper* helper = nullptr;
  try {
    helper = idle_helper();
  } catch (const std::system_error&) {  // nobody else can do it
    std::exchange(job->work, nullptr)();
    return;
  }
  helper->give(job);
  job->wait(awake);
}

}  // namespace cuop::backend
