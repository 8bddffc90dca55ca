// How ranks that are threads fail: a world and all that were split from it at one moment.
#include <utility>

#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/thread_world.h"

namespace cuop::dist {

/// Locks all worlds that were split from one whose mutex is held, and from those: nobody sees that
/// one of them has failed before all have.
class ThreadWorld::LockedParts : NonCopyable {
 public:
  explicit LockedParts(const ThreadWorld& world) { add_parts_of(world); }

 private:
  void add_parts_of(const ThreadWorld& world) {
    for (const auto& weak : world.children_) {
      const auto child = weak.lock();
      if (!child) continue;
      worlds_.push_back(child);
      locks_.emplace_back(child->mutex_);
      add_parts_of(*child);
    }
  }
  std::vector<std::shared_ptr<ThreadWorld>> worlds_;  // outlive their locks
  std::vector<Lock> locks_;
};

/// Mutexes are locked from the first world to its parts: this one is free for a moment before
/// `work` runs, and anything may have happened in it.
std::optional<CommunicationError> ThreadWorld::with_family(
    Lock& lock, const std::function<std::optional<CommunicationError>()>& work) {
  std::optional<CommunicationError> error;
  lock.unlock();
  {
    const Lock first_lock(first().mutex_);
    const LockedParts parts(first());
    error = work();
  }
  lock.lock();
  return error;
}

CommunicationError ThreadWorld::error_in(const Caller& caller, const std::string& text,
                                         int blamed) {
  return {text, blamed, {caller.op, at_rank(caller.rank).calls}};
}

void ThreadWorld::throw_failure(const Caller& caller) {
  at_rank(caller.rank).knows_failure = true;
  throw error_in(
      caller, cat(caller.op, ": rank ", caller.rank, " of ", size(), " cannot go on: ", failure_),
      failed_rank_);
}

void ThreadWorld::fail_and_throw(const Caller& caller, int blamed, const std::string& what) {
  const LockedParts parts(*this);
  throw fail_world(caller, blamed, what);
}

CommunicationError ThreadWorld::fail_world(const Caller& caller, int blamed,
                                           const std::string& what) {
  const std::string text = cat(caller.op, ": rank ", caller.rank, " of ", size(), " ", what);
  if (blamed >= 0) blamed = in_root(blamed);
  note_part_failed(blamed);
  mark_failed(blamed, text);
  at_rank(caller.rank).knows_failure = true;
  return error_in(caller, text, blamed);
}

CommunicationError ThreadWorld::fail_family(const Caller& caller, int blamed,
                                            const std::string& what) {
  const std::string text = cat(caller.op, ": rank ", caller.rank, " of ", size(), " ", what);
  note_part_failed(blamed);
  first().mark_failed(blamed, text);
  at_rank(caller.rank).knows_failure = true;
  first().at_rank(in_root(caller.rank)).knows_failure = true;
  return error_in(caller, text, blamed);
}

/// A part fails for itself; should one of its ranks then abort the first world, that names the same
/// rank.
void ThreadWorld::note_part_failed(int blamed) {
  if (!root_ || blamed < 0 || !failure_.empty()) return;
  const Lock lock(family_->mutex);
  if (family_->part_failed_rank < 0) family_->part_failed_rank = blamed;
}

void ThreadWorld::fail_here(int blamed, const std::string& text) {
  const LockedParts parts(*this);
  note_part_failed(blamed);
  mark_failed(blamed, text);
}

void ThreadWorld::mark_failed(int rank, const std::string& reason) {
  if (failure_.empty()) {
    failure_ = reason.empty() ? "no reason was given" : reason;
    failed_rank_ = rank;
    wake_all();
  }
  for (const auto& weak : children_) {
    if (const auto child = weak.lock()) child->mark_failed(rank, reason);
  }
}

void ThreadWorld::fail(int rank, int blamed, const std::string& reason) {
  const Lock lock(mutex_);
  fail_here(in_root(blamed), reason);
  at_rank(rank).knows_failure = true;
}

void ThreadWorld::abort(int rank, int failed, const std::string& reason) {
  const Lock lock(mutex_);
  int blamed = failed >= 0 ? failed : in_root(rank);
  if (!root_) {
    const Lock family_lock(family_->mutex);
    if (family_->part_failed_rank >= 0) blamed = family_->part_failed_rank;
  }
  fail_here(blamed, reason);
  at_rank(rank).knows_failure = true;
}

}  // namespace cuop::dist
