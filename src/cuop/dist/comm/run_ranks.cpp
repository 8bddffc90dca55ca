#include "cuop/dist/comm/run_ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/current.h"
#include "cuop/dist/comm/error_message.h"
#include "cuop/dist/comm/interrupt.h"
#include "cuop/dist/comm/thread.h"

namespace cuop::dist {

namespace {

/// Keeps the error that was raised first: the later ones are its consequences.
struct FirstError {
  std::mutex mutex;
  std::exception_ptr error;

  void offer(const std::exception_ptr& candidate) {
    const std::lock_guard lock(mutex);
    if (!error) error = candidate;
  }
};

/// Waits for the ranks so that the wait can be interrupted, which joining a thread cannot.
class Countdown {
 public:
  explicit Countdown(size_t count) : count_(count) {}
  void count_down() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return count_ == 0; })) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  const auto communicators = make_thread_communicators(ranks);
  const int share = std::max(1, backend::thread_count() / ranks);
  FirstError first;
  Countdown running(communicators.size());
  const auto run_rank = [&](const std::shared_ptr<Communicator>& comm) {
    trace::set_thread_rank(comm->rank());
    backend::set_thread_count(share);
    const CurrentCommunicator current(comm);
    try {
      work(comm);
      leave_thread_world(*comm);
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      first.offer(error);
      comm->abort(message_of(error));
    }
    running.count_down();
  };
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  try {
    for (const auto& comm : communicators) threads.emplace_back(run_rank, comm);
    running.wait();
  } catch (...) {  // interrupted, or the system has no thread left for the next rank
    first.offer(std::current_exception());
    communicators.back()->abort(message_of(std::current_exception()));
  }
  for (std::thread& thread : threads) thread.join();
  if (first.error) std::rethrow_exception(first.error);
}

}  // namespace cuop::dist
