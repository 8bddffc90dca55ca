// One piece of work of N ranks that are threads: what they share with each other and with whoever
// waits for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "cuop/core/device.h"
#include "cuop/core/error.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// What is thrown where the system has none left for it.
ExecutionError no_thread_for_rank(size_t rank, int ranks, const std::system_error& why);

/// Ranks that are left to themselves keep it.
class RankCall {
 public:
  using Work = std::function<void(const std::shared_ptr<Communicator>&)>;

  /// Of the ranks of `communicators`, of kind "thread"; a new world's, or one in which no call has
  /// failed. Threads and devices are dealt out as run_ranks says.
  RankCall(std::vector<std::shared_ptr<Communicator>> communicators, Device first, Work work);

  size_t size() const { return communicators_.size(); }

  /// Does the rank's part, on its thread; throws nothing. With `is_last` the rank leaves its world
  /// at the end.
  void run(size_t rank, bool is_last);
  /// Only the first `started` ranks can be started: ends their waits for the others.
  void fail_to_start(const std::exception_ptr& error, size_t started);

  /// Until all ranks that were started have ended. What the user's interrupt throws ends what they
  /// wait for and compute, and is what went wrong then; they have not ended yet.
  void wait();
  /// Until they have ended, which nobody interrupts.
  void wait_for_end();
  /// The same for half a second.
  void wait_a_moment();
  bool has_ended(size_t rank);

  /// What went wrong first: the later errors are its consequences. Of what a rank raised itself,
  /// where any did: those that only heard of it may be earlier. Null when nothing went wrong.
  std::exception_ptr error();

 private:
  void fail(const std::exception_ptr& error, Communicator& comm);
  void interrupt(const std::exception_ptr& why);
  /// What error() is from now on, unless there is one of that weight or more.
  void keep(std::exception_ptr error, int weight);
  Device device_of(size_t rank) const;
  bool have_all_ended() const { return ended_ == started_; }

  std::vector<std::shared_ptr<Communicator>> communicators_;
  Work work_;
  int threads_each_;
  Device device_;
  std::atomic<bool> is_interrupted_ = false;
  std::atomic<size_t> ended_ = 0;      // ranks; changed under the mutex
  std::mutex mutex_;                   // of all below
  std::condition_variable all_ended_;  // for one who waits
  std::vector<bool> has_ended_;
  size_t started_;  // ranks
  std::exception_ptr error_;
  int weight_ = 0;  // of the error
};

}  // namespace cuop::dist
