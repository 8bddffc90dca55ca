#include "cuop/dist/comm/rank_call.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/spin.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/bootstrap.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/thread.h"

namespace cuop::dist {

namespace {

/// How long ranks may take to end after an interrupt before they are left to themselves.
constexpr auto kPatience = std::chrono::milliseconds(500);

// Of errors, from what a rank heard of another one to what is the call's in any case.
enum Weight { kNone, kHeard, kOfItself, kOriginal, kInterrupt };

Weight weight_of(const std::exception_ptr& error, int rank) {
  const std::optional<int> failed = blamed_by(error);
  if (!failed) return kOriginal;
  return *failed == rank ? kOfItself : kHeard;
}

}  // namespace

ExecutionError no_thread_for_rank(size_t rank, int ranks, const std::system_error& why) {
  return ExecutionError(cat("run_ranks: no thread for rank ", rank, " of ", ranks, ": ", why.what(),
                            "; ask for fewer ranks or raise the limit (ulimit -u)"));
}

RankCall::RankCall(std::vector<std::shared_ptr<Communicator>> communicators, Device first,
                   Work work)
    : communicators_(std::move(communicators)),
      work_(std::move(work)),
      threads_each_(std::max(1, backend::thread_count() / static_cast<int>(communicators_.size()))),
      device_(first),
      has_ended_(communicators_.size(), false),
      started_(communicators_.size()) {}

void RankCall::run(size_t rank, bool is_last) {
  const std::shared_ptr<Communicator>& comm = communicators_[rank];
  {
    const CurrentCommunicator current(comm);
    const CancelScope cancelled(is_interrupted_);
    try {
      trace::set_thread_rank(comm->rank());
      backend::set_thread_count(threads_each_);
      backend::set_current_device(device_of(rank));
      work_(comm);
    } catch (...) {
      fail(std::current_exception(), *comm);
    }
    // After a failure the others need not wait for it, nor meet it to go on.
    if (is_last || !comm->failure().empty()) leave_thread_world(*comm);
  }
  const std::lock_guard lock(mutex_);
  has_ended_[rank] = true;
  ++ended_;
  if (have_all_ended()) all_ended_.notify_one();
}

void RankCall::fail_to_start(const std::exception_ptr& error, size_t started) {
  {
    const std::lock_guard lock(mutex_);
    started_ = started;
  }
  fail(error, *communicators_.back());
}

void RankCall::fail(const std::exception_ptr& error, Communicator& comm) {
  // Read before others may let go of it: checkers of threads do not see how exceptions are counted.
  const std::string message = message_of(error);
  keep(error, weight_of(error, comm.in_world(comm.rank())));
  comm.abort(message);
}

void RankCall::interrupt(const std::exception_ptr& why) {
  keep(why, kInterrupt);
  is_interrupted_ = true;
  communicators_.back()->abort(message_of(why));
}

void RankCall::keep(std::exception_ptr error, int weight) {
  const std::lock_guard lock(mutex_);
  if (weight <= weight_) return;
  error_.swap(error);  // the earlier one goes when nothing is locked
  weight_ = weight;
}

void RankCall::wait() {
  // Where this thread takes no rank's core.
  if (std::cmp_less(size(), backend::core_count())) spin_until([&] { return ended_ == size(); });
  try {
    std::unique_lock lock(mutex_);
    wait_interruptibly(all_ended_, lock, std::chrono::steady_clock::time_point::max(),
                       [&] { return have_all_ended(); });
  } catch (...) {
    interrupt(std::current_exception());
    throw;
  }
}

void RankCall::wait_for_end() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [&] { return have_all_ended(); });
}

void RankCall::wait_a_moment() {
  std::unique_lock lock(mutex_);
  all_ended_.wait_for(lock, kPatience, [&] { return have_all_ended(); });
}

bool RankCall::has_ended(size_t rank) {
  const std::lock_guard lock(mutex_);
  return has_ended_[rank];
}

std::exception_ptr RankCall::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

/// GPUs are dealt out from the caller's on.
Device RankCall::device_of(size_t rank) const {
  if (device_.is_cpu()) return device_;
  const int gpus = backend::device_count(device_.type);
  return {device_.type, (device_.index + static_cast<int>(rank)) % gpus};
}

}  // namespace cuop::dist
