#include "cuop/dist/comm/rank_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/core/spin.h"
#include "cuop/dist/comm/rank_call.h"
#include "cuop/dist/comm/thread.h"

namespace cuop::dist {

namespace {

/// Threads with the communicators of one world, which do one call after the other.
class Team : NonCopyable {
 public:
  /// ExecutionError when the system has no thread left.
  Team(int ranks, Device first) : communicators_(make_thread_communicators(ranks)), first_(first) {
    try {
      for (size_t rank = 0; rank < communicators_.size(); ++rank) {
        threads_.emplace_back([this, rank] { serve(rank); });
      }
    } catch (const std::system_error& error) {
      end();
      throw no_thread_for_rank(threads_.size(), ranks, error);
    }
  }
  ~Team() { end(); }

  bool fits(int ranks, Device first) const {
    return std::cmp_equal(communicators_.size(), ranks) && first_ == first;
  }

  /// Throws what a rank raised, or an interrupt.
  void run(const RankWork& work) {
    RankCall call(communicators_, first_, work);
    give(&call);
    try {
      call.wait();
    } catch (...) {
      call.wait_for_end();
      throw;
    }
    if (const std::exception_ptr error = call.error()) std::rethrow_exception(error);
  }

  /// Not after an error, and not after one that the work kept to itself.
  bool is_usable() const { return communicators_[0]->failure().empty(); }

 private:
  /// The ranks' next call; null to end.
  void give(RankCall* call) {
    call_ = call;
    ++given_;
    given_.notify_all();
  }

  void serve(size_t rank) {
    for (unsigned done = 0;; ++done) {
      spin_until([&] { return given_ != done; });
      given_.wait(done);
      if (call_ == nullptr) return;
      call_->run(rank, false);
    }
  }

  void end() {
    give(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<std::shared_ptr<Communicator>> communicators_;
  Device first_;
  std::vector<std::thread> threads_;
  RankCall* call_ = nullptr;  // written while all ranks wait for the next
  std::atomic<unsigned> given_ = 0;
};

struct IdleTeams {
  std::mutex mutex;
  std::vector<std::unique_ptr<Team>> all;  // the last used at the end
};

IdleTeams*& idle_teams() {
  static auto* idle = new IdleTeams;  // its threads live until the process ends
  return idle;
}

/// One that is idle; null when there is none.
std::unique_ptr<Team> take(int ranks, Device first) {
  IdleTeams& idle = *idle_teams();
  const std::lock_guard lock(idle.mutex);
  const auto found = std::find_if(idle.all.rbegin(), idle.all.rend(),
                                  [&](const auto& team) { return team->fits(ranks, first); });
  if (found == idle.all.rend()) return nullptr;
  std::unique_ptr<Team> team = std::move(*found);
  idle.all.erase(std::next(found).base());
  return team;
}

void give_back(std::unique_ptr<Team> team) {
  std::unique_ptr<Team> gone;  // ends when nothing is locked
  IdleTeams& idle = *idle_teams();
  const std::lock_guard lock(idle.mutex);
  idle.all.push_back(std::move(team));
  if (idle.all.size() <= kIdleTeams) return;
  gone = std::move(idle.all.front());
  idle.all.erase(idle.all.begin());
}

}  // namespace

void run_on_team(int ranks, Device first, const RankWork& work) {
  // A forked child has none of the threads.
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { idle_teams() = new IdleTeams; });
    return true;
  }();
  (void)registered;
  std::unique_ptr<Team> team = take(ranks, first);
  if (!team) team = std::make_unique<Team>(ranks, first);
  team->run(work);
  if (team->is_usable()) give_back(std::move(team));
}

}  // namespace cuop::dist
