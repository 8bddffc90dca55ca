#include "cuop/dist/comm/run_ranks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/current.h"
#include "cuop/dist/comm/error_message.h"
#include "cuop/dist/comm/thread.h"

namespace cuop::dist {

namespace {

/// How long ranks may take to end after an interrupt before they are left to themselves.
constexpr auto kPatience = std::chrono::milliseconds(500);

/// What the ranks share with each other and with whoever waits for them. Ranks that are left to
/// themselves keep it.
class Ranks {
 public:
  Ranks(int ranks, Device first, RankWork work)
      : communicators_(make_thread_communicators(ranks)),
        work_(std::move(work)),
        threads_each_(std::max(1, backend::thread_count() / ranks)),
        device_(first),
        has_ended_(communicators_.size(), false) {}

  size_t size() const { return communicators_.size(); }

  void run(size_t rank) {
    const std::shared_ptr<Communicator>& comm = communicators_[rank];
    trace::set_thread_rank(comm->rank());
    backend::set_thread_count(threads_each_);
    backend::set_current_device(device_of(rank));
    {
      const CurrentCommunicator current(comm);
      const CancelScope cancelled(is_interrupted_);
      try {
        work_(comm);
        leave_thread_world(*comm);
      } catch (...) {
        fail(std::current_exception(), *comm);
        leave_thread_world(*comm);  // the others need not wait for it to recover
      }
    }
    const std::lock_guard lock(mutex_);
    has_ended_[rank] = true;
    changed_.notify_all();
  }

  /// Keeps the error that was raised first: the later ones are its consequences.
  void fail(const std::exception_ptr& error, Communicator& comm) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    comm.abort(message_of(error));
  }

  /// Ends what the ranks wait for and compute. After this, an interrupt is what went wrong.
  void interrupt(const std::exception_ptr& why) {
    {
      const std::lock_guard lock(mutex_);
      error_ = why;
    }
    is_interrupted_ = true;
    communicators_.back()->abort(message_of(why));
  }

  /// Until the first `count` ranks have ended; the user may interrupt it.
  void wait(size_t count) {
    std::unique_lock lock(mutex_);
    wait_interruptibly(changed_, lock, std::chrono::steady_clock::time_point::max(),
                       [&] { return have_ended(count); });
  }
  /// The same within kPatience, which nobody interrupts.
  void wait_a_moment(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return have_ended(count); });
  }
  bool has_ended(size_t rank) {
    const std::lock_guard lock(mutex_);
    return has_ended_[rank];
  }
  std::exception_ptr error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  Communicator& last() { return *communicators_.back(); }

 private:
  /// GPUs are dealt out from the caller's on.
  Device device_of(size_t rank) const {
    if (device_.is_cpu()) return device_;
    const int gpus = backend::device_count(device_.type);
    return {device_.type, (device_.index + static_cast<int>(rank)) % gpus};
  }
  bool have_ended(size_t count) const {
    return std::count(has_ended_.begin(), has_ended_.end(), true) ==
           static_cast<std::ptrdiff_t>(count);
  }

  std::vector<std::shared_ptr<Communicator>> communicators_;
  RankWork work_;
  int threads_each_;
  Device device_;
  std::atomic<bool> is_interrupted_ = false;
  std::mutex mutex_;  // of the three below
  std::condition_variable changed_;
  std::vector<bool> has_ended_;
  std::exception_ptr error_;
};

/// A rank that has not ended is waited for, or left to itself.
void part(std::thread& thread, Ranks& ranks, size_t rank, bool may_leave) {
  if (!may_leave || ranks.has_ended(rank)) {
    thread.join();
    return;
  }
  thread.detach();
  log(LogLevel::kWarn, "run_ranks: interrupted; rank ", rank, " of ", ranks.size(),
      " does not end and is left to itself");
}

}  // namespace

void run_ranks(int ranks, const RankWork& work, const std::function<void()>& end_ranks) {
  run_ranks(ranks, backend::current_device(), work, end_ranks);
}

void run_ranks(int ranks, Device first, const RankWork& work,
               const std::function<void()>& end_ranks) {
  const auto shared = std::make_shared<Ranks>(ranks, first, work);
  std::vector<std::thread> threads;
  bool is_interrupted = false;
  try {
    for (size_t rank = 0; rank < shared->size(); ++rank) {
      threads.emplace_back([shared, rank] { shared->run(rank); });
    }
  } catch (const std::system_error&) {  // the system has no thread left for the next rank
    shared->fail(std::current_exception(), shared->last());
  }
  try {
    shared->wait(threads.size());
  } catch (...) {
    is_interrupted = true;
    shared->interrupt(std::current_exception());
    if (end_ranks) {
      end_ranks();
      shared->wait_a_moment(threads.size());
    }
  }
  for (size_t rank = 0; rank < threads.size(); ++rank) {
    part(threads[rank], *shared, rank, is_interrupted && end_ranks);
  }
  if (const std::exception_ptr error = shared->error()) std::rethrow_exception(error);
}

}  // namespace cuop::dist
