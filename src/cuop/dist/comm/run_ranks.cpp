#include "cuop/dist/comm/run_ranks.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/current.h"
#include "cuop/dist/comm/error_message.h"
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

}  // namespace

void run_ranks(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  const auto communicators = make_thread_communicators(ranks);
  const int share = std::max(1, backend::thread_count() / ranks);
  FirstError first;
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
  };
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  try {
    for (const auto& comm : communicators) threads.emplace_back(run_rank, comm);
  } catch (const std::exception& error) {  // the system has no thread left for the next rank
    first.offer(std::current_exception());
    communicators.back()->abort(error.what());
  }
  for (std::thread& thread : threads) thread.join();
  if (first.error) std::rethrow_exception(first.error);
}

}  // namespace cuop::dist
