#include "cuop/dist/comm/run_ranks.h"

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "cuop/backend/current_device.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/rank_call.h"
#include "cuop/dist/comm/thread.h"

namespace cuop::dist {

namespace {

/// A rank that has not ended is waited for, or left to itself.
void part(std::thread& thread, RankCall& call, size_t rank, bool may_leave) {
  if (!may_leave || call.has_ended(rank)) {
    thread.join();
    return;
  }
  thread.detach();
  log(LogLevel::kWarn, "run_ranks: interrupted; rank ", rank, " of ", call.size(),
      " does not end and is left to itself");
}

}  // namespace

void run_ranks(int ranks, const RankWork& work, const std::function<void()>& end_ranks) {
  run_ranks(ranks, backend::current_device(), work, end_ranks);
}

void run_ranks(int ranks, Device first, const RankWork& work,
               const std::function<void()>& end_ranks) {
  if (!work) throw ExecutionError("run_ranks: an empty function was given as the ranks' work");
  const auto call = std::make_shared<RankCall>(make_thread_communicators(ranks), first, work);
  std::vector<std::thread> threads;
  bool is_interrupted = false;
  try {
    for (size_t rank = 0; rank < call->size(); ++rank) {
      threads.emplace_back([call, rank] { call->run(rank, true); });
    }
  } catch (const std::system_error& error) {
    call->fail_to_start(std::make_exception_ptr(no_thread_for_rank(threads.size(), ranks, error)),
                        threads.size());
  }
  try {
    call->wait();
  } catch (...) {
    is_interrupted = true;
    if (end_ranks) {
      end_ranks();
      call->wait_a_moment();
    }
  }
  for (size_t rank = 0; rank < threads.size(); ++rank) {
    part(threads[rank], *call, rank, is_interrupted && end_ranks);
  }
  if (const std::exception_ptr error = call->error()) std::rethrow_exception(error);
}

}  // namespace cuop::dist
