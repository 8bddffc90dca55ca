#include "cuop/backend/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/env.h"
#include "cuop/core/interrupt.h"
#include "cuop/memory/host_memory.h"

namespace cuop::backend {

namespace {

using Clock = std::chrono::steady_clock;
using Body = std::function<void(int64_t, int64_t)>;

/// Calls the body over [begin, end) in steps that are so short that somebody can stop it in
/// between, and so long that asking costs nothing; returns whether it came to the end.
bool run_in_steps(const Body& body, int64_t begin, int64_t end, int64_t grain,
                  const std::atomic<bool>* is_stopped) {
  constexpr auto kShort = std::chrono::milliseconds(2), kLong = std::chrono::milliseconds(20);
  for (int64_t step = grain; end - begin > step;) {
    const Clock::time_point start = Clock::now();
    body(begin, begin + step);
    begin += step;
    if (is_stopped != nullptr && *is_stopped) return false;
    check_interrupt();
    const auto took = Clock::now() - start;
    if (took < kShort && step <= (end - begin) / 2) step *= 2;
    if (took > kLong) step = std::max(grain, step / 2);
  }
  body(begin, end);
  return true;
}

/// One parallel_for: workers and the caller take pieces until none is left.
struct Job {
  const Body* body;
  int64_t count;
  int64_t piece;
  int64_t grain;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> is_stopped = false;
  std::mutex mutex;
  std::condition_variable finished;
  int64_t helpers = 0;  // workers inside `work`, guarded by mutex
  bool is_closed = false;
  std::exception_ptr error;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(piece);
      if (begin >= count || is_stopped) return;
      try {
        if (!run_in_steps(*body, begin, std::min(begin + piece, count), grain, &is_stopped)) return;
        check_interrupt();  // a piece may be a single step
      } catch (...) {
        stop(std::current_exception());
      }
    }
  }

  void help() {
    const CancelScope scope(is_stopped);
    work();
  }

  void stop(const std::exception_ptr& reason) {
    const std::lock_guard lock(mutex);
    if (!error) error = reason;
    next = count;
    is_stopped = true;
  }

  /// The caller waits for those that still work, and can be interrupted meanwhile.
  void finish() {
    std::unique_lock lock(mutex);
    is_closed = true;
    const auto is_done = [this] { return helpers == 0; };
    try {
      wait_interruptibly(finished, lock, Clock::time_point::max(), is_done);
    } catch (...) {
      lock.unlock();
      stop(std::current_exception());
      lock.lock();
      finished.wait(lock, is_done);
    }
    if (error) std::rethrow_exception(error);
  }
};

thread_local bool is_inside_parallel = false;
thread_local int chosen_threads = 0;
std::atomic<int> local_ranks = 1;

class Pool {
 public:
  void offer(const std::shared_ptr<Job>& job, int helpers) {
    {
      const std::lock_guard lock(mutex_);
      // Beside those that other callers have, who may be ranks or copies of several GPUs.
      const int taken = started_ - idle_ + static_cast<int>(queue_.size());
      start(std::min(taken + helpers, core_count()));
      helpers = std::min(helpers, started_);
      for (int i = 0; i < helpers; ++i) queue_.push_back(job);
    }
    if (helpers == 1) {
      wake_.notify_one();
    } else {
      wake_.notify_all();
    }
  }

 private:
  /// Fewer when the system has no thread left, or the process no addresses for another stack: the
  /// caller then does their part. The lock is held.
  void start(int threads) {
    try {
      for (; started_ < threads; ++started_) std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void run() {
    is_inside_parallel = true;
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        ++idle_;
        wake_.wait(lock, [this] { return !queue_.empty(); });
        --idle_;
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      {
        const std::lock_guard lock(job->mutex);
        if (job->is_closed) continue;  // the caller has finished without this helper
        ++job->helpers;
      }
      job->help();
      {
        const std::lock_guard lock(job->mutex);
        --job->helpers;
      }
      job->finished.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;
  int started_ = 0;
  int idle_ = 0;  ///< of them, that wait for a job
};

Pool* process_pool() {
  static Pool* pool = new Pool;  // its threads live until the process ends
  // A forked child has none of the threads: it starts with a pool of its own.
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
    return true;
  }();
  (void)registered;
  return pool;
}

}  // namespace

int core_count() {
  static const int count = [] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) {
      return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    }
    return std::max(1, CPU_COUNT(&mask));
  }();
  return count;
}

/// How many threads take a quarter of the process's addresses: each has a stack, and an arena of
/// the C library's allocator.
static int most_by_addresses() {
  constexpr int64_t kOfThread = int64_t{72} << 20;
  static const int64_t most = memory::address_space_limit() / 4 / kOfThread;
  return static_cast<int>(std::clamp<int64_t>(most, 1, std::numeric_limits<int>::max()));
}

void set_local_ranks(int ranks) { local_ranks = std::max(1, ranks); }

int thread_count() {
  if (is_inside_parallel) return 1;
  const int most = execution_options().most_threads;
  if (most == 1) return 1;
  const int asked = static_cast<int>(env().threads.value);
  const int usual = chosen_threads > 0 ? chosen_threads
                    : asked > 0        ? asked
                                : std::clamp(core_count() / local_ranks, 1, most_by_addresses());
  return most > 0 ? std::min(most, usual) : usual;
}

void set_thread_count(int count) { chosen_threads = std::max(0, count); }

bool can_start_threads(int64_t count) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  const auto end = [&] {
    is_over = true;
    is_over.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (int64_t i = 0; i < count; ++i) threads.emplace_back([&] { is_over.wait(false); });
  } catch (const std::system_error&) {
    end();
    return false;
  }
  end();
  return true;
}

void parallel_for(int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t pieces = divide_up(count, grain);
  const int64_t threads = pieces > 1 ? std::min<int64_t>(thread_count(), pieces) : 1;
  if (threads <= 1) {
    run_in_steps(body, 0, count, grain, nullptr);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->body = &body;
  job->count = count;
  job->grain = grain;
  // A few pieces a thread even out unequal work without making them smaller than the grain.
  job->piece = divide_up(count, std::min<int64_t>(pieces, 4 * threads));
  process_pool()->offer(job, static_cast<int>(threads - 1));
  is_inside_parallel = true;
  job->work();
  is_inside_parallel = false;
  job->finish();
}

}  // namespace cuop::backend
