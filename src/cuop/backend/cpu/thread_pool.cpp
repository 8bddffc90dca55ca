#include "cuop/backend/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "cuop/backend/kernel.h"
#include "cuop/core/env.h"

namespace cuop::backend {

namespace {

/// One parallel_for: workers and the caller take pieces until none is left.
struct Job {
  const std::function<void(int64_t, int64_t)>* body;
  int64_t count;
  int64_t piece;
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::condition_variable finished;
  int64_t helpers = 0;  // workers inside `work`, guarded by mutex
  bool is_closed = false;
  std::exception_ptr error;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(piece);
      if (begin >= count) return;
      try {
        (*body)(begin, std::min(begin + piece, count));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
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
      start(std::min(helpers, core_count()));
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
        wake_.wait(lock, [this] { return !queue_.empty(); });
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      {
        const std::lock_guard lock(job->mutex);
        if (job->is_closed) continue;  // the caller has finished without this helper
        ++job->helpers;
      }
      job->work();
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

void set_local_ranks(int ranks) { local_ranks = std::max(1, ranks); }

int thread_count() {
  if (is_inside_parallel || asked_kernel().type == KernelType::kSimple) return 1;
  if (chosen_threads > 0) return chosen_threads;
  const int asked = static_cast<int>(env().threads.value);
  return asked > 0 ? asked : std::max(1, core_count() / local_ranks);
}

void set_thread_count(int count) { chosen_threads = std::max(0, count); }

void parallel_for(int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body) {
  if (count <= 0) return;
  const int64_t pieces = (count + std::max<int64_t>(1, grain) - 1) / std::max<int64_t>(1, grain);
  const int64_t threads = pieces > 1 ? std::min<int64_t>(thread_count(), pieces) : 1;
  if (threads <= 1) {
    body(0, count);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->body = &body;
  job->count = count;
  // A few pieces a thread even out unequal work without making them smaller than the grain.
  const int64_t shares = std::min<int64_t>(pieces, 4 * threads);
  job->piece = (count + shares - 1) / shares;
  process_pool()->offer(job, static_cast<int>(threads - 1));
  is_inside_parallel = true;
  job->work();
  is_inside_parallel = false;
  std::unique_lock lock(job->mutex);
  job->is_closed = true;
  job->finished.wait(lock, [&] { return job->helpers == 0; });
  if (job->error) std::rethrow_exception(job->error);
}

}  // namespace cuop::backend
