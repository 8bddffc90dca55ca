// How ranks that are threads come back from a failure: all of them, or those that are left.
#include <algorithm>
#include <utility>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/health.h"
#include "cuop/dist/comm/heartbeat.h"
#include "cuop/dist/comm/thread_world.h"

namespace cuop::dist {

int ThreadWorld::first_that_left() const {
  int first = -1;
  for (int rank = size() - 1; rank >= 0; --rank) {
    if (!ranks_[static_cast<size_t>(rank)].has_left) continue;
    if (in_root(rank) == failed_rank_) return rank;  // because of which the others may have left
    first = rank;
  }
  return first;
}

void ThreadWorld::reset_locked() {
  // Every rank is inside `recover`, so nobody waits, copies or owns a posted message.
  failure_.clear();
  failed_rank_ = -1;
  arrived_ = 0;
  for (Rank& rank : ranks_) {
    rank.inbox.clear();
    rank.has_arrived = rank.is_recovering = rank.knows_failure = false;
    rank.met_in = nullptr;
    rank.calls = 0;
    rank.refused_calls.clear();
    rank.refused_message_at = -1;
  }
  refusals_.clear();
  {
    const Lock family_lock(family_->mutex);
    family_->part_failed_rank = -1;
  }
  recovering_ = 0;
  ++recoveries_;
  for_each_child([](ThreadWorld& child) { child.reset_locked(); });
}

void ThreadWorld::recover(const Caller& caller) {
  Lock lock(mutex_);
  at_rank(caller.rank).is_recovering = true;
  note_meeting(in_root(caller.rank), caller.op);
  if (++recovering_ == size()) {
    reset_locked();
    wake_all();
    return;
  }
  const uint64_t before = recoveries_;
  int gone = -1;
  const auto give_up = [&] {
    at_rank(caller.rank).is_recovering = false;
    note_meeting(in_root(caller.rank), nullptr);
    --recovering_;
  };
  try {
    wait_interruptibly(at_rank(caller.rank).wake, lock, caller.deadline(), [&] {
      gone = recoveries_ != before ? -1 : first_that_left();
      return recoveries_ != before || gone >= 0;
    });
  } catch (...) {
    if (recoveries_ == before) give_up();
    throw;
  }
  if (recoveries_ != before) return;
  give_up();
  std::vector<int> late;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != caller.rank && !at_rank(rank).is_recovering) late.push_back(rank);
  }
  const std::string who = cat("recover: rank ", caller.rank, " of ", size());
  if (gone >= 0) {
    throw error_in(
        caller,
        cat(who, " waits for ", named(gone), ", which has ended; shrink goes on without it"),
        in_root(gone));
  }
  throw error_in(caller, cat(who, " waited ", caller.timeout, " s for ", ranks_text(late)),
                 late.size() == 1 ? in_root(late[0]) : -1);
}

void ThreadWorld::leave(int rank) {
  const Lock lock(mutex_);
  leave_locked(in_root(rank));
}

void ThreadWorld::leave_locked(int rank_in_root) {
  for (int rank = 0; rank < size(); ++rank) {
    if (in_root(rank) == rank_in_root) at_rank(rank).has_left = true;
  }
  wake_all();
  for_each_child([&](ThreadWorld& child) { child.leave_locked(rank_in_root); });
}

void ThreadWorld::note_meeting(int rank_in_root, const char* op) {
  for (int rank = 0; rank < size(); ++rank) {
    if (in_root(rank) == rank_in_root) at_rank(rank).met_in = op;
  }
  wake_all();
  for_each_child([&](ThreadWorld& child) { child.note_meeting(rank_in_root, op); });
}

std::pair<std::shared_ptr<ThreadWorld>, int> ThreadWorld::shrink(const Caller& caller) {
  Lock lock(mutex_);
  Rank& self = at_rank(caller.rank);
  const uint64_t before = shrinks_;
  self.is_shrinking = !self.is_left_out;
  const auto is_settled = [&] {
    return shrinks_ != before || std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
             return rank.is_shrinking || rank.has_left || rank.is_left_out;
           });
  };
  note_meeting(in_root(caller.rank), caller.op);
  try {
    if (self.is_shrinking) wait_interruptibly(self.wake, lock, caller.deadline(), is_settled);
  } catch (...) {
    self.is_shrinking = false;
    note_meeting(in_root(caller.rank), nullptr);
    throw;
  }
  if (self.is_shrinking && shrinks_ == before) conclude_shrink();
  if (self.is_left_out) note_meeting(in_root(caller.rank), nullptr);
  const auto place = std::find(survivors_.begin(), survivors_.end(), caller.rank);
  if (!self.is_left_out && place != survivors_.end()) {
    return {shrunk_, static_cast<int>(place - survivors_.begin())};
  }
  throw error_in(caller,
                 cat("shrink: rank ", caller.rank, " of ", size(),
                     " was left out: the others go on without it"),
                 in_root(caller.rank));
}

/// Who is here by now goes on.
void ThreadWorld::conclude_shrink() {
  survivors_.clear();
  for (int rank = 0; rank < size(); ++rank) {
    Rank& each = at_rank(rank);
    if (each.is_shrinking) survivors_.push_back(rank);
    each.is_left_out = !each.is_shrinking;
    each.is_shrinking = false;
  }
  shrunk_ = std::make_shared<ThreadWorld>(static_cast<int>(survivors_.size()));
  // Who was left out need not wait here for one that has gone on; else all are here again.
  for (int rank = 0; rank < size() && std::cmp_equal(survivors_.size(), size()); ++rank) {
    note_meeting(in_root(rank), nullptr);
  }
  ++shrinks_;
  wake_all();
}

std::vector<RankHealth> ThreadWorld::health() {
  std::vector<SeenRank> all;
  {
    const auto now = std::chrono::steady_clock::now();
    const Lock lock(family_->mutex);
    for (const auto& waits : family_->waits) {
      SeenRank& rank = all.emplace_back();
      for (const auto& [world, wait] : waits) {
        rank.health.operation = wait.op;
        rank.health.number = wait.number;
        rank.health.seconds = std::chrono::duration<double>(now - wait.since).count();
        rank.awaited = wait.awaited;
      }
    }
  }
  const Lock lock(mutex_);
  std::vector<int> here(all.size(), -1);
  for (int rank = 0; rank < size(); ++rank) {
    here[static_cast<size_t>(in_root(rank))] = rank;
    SeenRank& seen = all[static_cast<size_t>(in_root(rank))];
    if (at_rank(rank).has_left) seen.health.state = RankHealth::State::kLeft;
    if (seen.health.operation.empty()) seen.health.number = at_rank(rank).calls;
    if (!seen.awaited.empty()) seen.health.waits_for = seen.awaited[0];
  }
  mark_stuck(all, Heartbeat::limit_of_environment());
  std::vector<RankHealth> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    RankHealth& health = ranks.emplace_back(all[static_cast<size_t>(in_root(rank))].health);
    if (health.waits_for >= 0) health.waits_for = here[static_cast<size_t>(health.waits_for)];
  }
  return ranks;
}

}  // namespace cuop::dist
