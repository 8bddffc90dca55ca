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
    rank.has_given_up_recovery = false;
    rank.apart = -1;
    rank.parted_from = nullptr;
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

/// Unless a rank has left: then the recovery is in vain, and who shrinks goes on without it. Who
/// shrinks after a recovery in vain waits for the others, which may follow it. The others are in
/// their meetings no more, whenever they wake to raise it.
void ThreadWorld::part_meetings() {
  if (first_that_left() >= 0) return;
  const auto recoverer = std::ranges::find_if(ranks_, &Rank::is_recovering);
  const auto shrinker = std::ranges::find_if(ranks_, &Rank::is_shrinking);
  if (recoverer == ranks_.end() || shrinker == ranks_.end()) return;
  std::vector<int> parted;
  for (int rank = 0; rank < size(); ++rank) {
    Rank& each = at_rank(rank);
    const bool is_to_leave_shrink = each.is_shrinking && !each.has_given_up_recovery;
    if (!each.is_recovering && !is_to_leave_shrink) continue;
    const auto other = each.is_recovering ? shrinker : recoverer;
    each.apart = static_cast<int>(other - ranks_.begin());
    each.apart_in = other->met_in;
    parted.push_back(rank);
  }
  ++partings_;
  for (const int rank : parted) {
    Rank& each = at_rank(rank);
    each.parted_from = each.met_in;
    each.parting = partings_;
    if (each.is_recovering) give_up_recovery(rank);
    each.is_shrinking = false;
    note_meeting(in_root(rank), nullptr);
  }
}

void ThreadWorld::give_up_recovery(int rank) {
  at_rank(rank).is_recovering = false;
  at_rank(rank).has_given_up_recovery = true;
  --recovering_;
  note_meeting(in_root(rank), nullptr);
}

/// Whether this rank's meeting ends for another that is in another one.
bool ThreadWorld::is_apart(int rank, bool recovers) {
  Rank& self = at_rank(rank);
  if (!recovers && self.has_given_up_recovery) return false;
  for (int other = 0; other < size(); ++other) {
    const Rank& each = at_rank(other);
    if (each.parted_from == nullptr || each.parting <= self.parting) continue;
    if (std::string_view(each.parted_from) == (recovers ? "recover" : "shrink")) continue;
    self.apart = other;
    self.apart_in = each.parted_from;
    self.parting = partings_;
    return true;
  }
  if (first_that_left() >= 0) return false;
  const auto has_gone_on = [&](int each) {
    return std::cmp_less(survivors_.size(), size()) && std::ranges::count(survivors_, each) > 0;
  };
  for (int other = 0; other < size(); ++other) {
    const Rank& each = at_rank(other);
    // Of this world part_meetings() tells; this is of one around it, and of who has gone on.
    const bool is_here = each.is_recovering || each.is_shrinking || each.is_left_out;
    if (other == rank || is_here || each.met_in == nullptr) continue;
    if (has_gone_on(other) && has_gone_on(rank)) continue;  // together
    self.apart = other;
    self.apart_in = each.met_in;
    return true;
  }
  return false;
}

void ThreadWorld::raise_apart(const Caller& caller) {
  Rank& self = at_rank(caller.rank);
  const int other = std::exchange(self.apart, -1);
  throw error_in(
      caller,
      cat(caller.op, ": rank ", caller.rank, " of ", size(), " waits for ", named(other),
          ", which has called ", self.apart_in, "; all ranks make the same call of the two"),
      in_root(other));
}

void ThreadWorld::recover(const Caller& caller) {
  Lock lock(mutex_);
  Rank& self = at_rank(caller.rank);
  self.is_recovering = true;
  self.apart = -1;
  self.parted_from = nullptr;
  note_meeting(in_root(caller.rank), caller.op);
  if (++recovering_ == size()) {
    reset_locked();
    wake_all();
    return;
  }
  part_meetings();
  const uint64_t before = recoveries_;
  int gone = -1;
  bool is_parted = false;
  const auto give_up = [&] {
    if (self.is_recovering) give_up_recovery(caller.rank);
  };
  try {
    wait_interruptibly(self.wake, lock, caller.deadline(), [&] {
      if (recoveries_ != before) return true;
      gone = first_that_left();
      is_parted = self.apart >= 0 || is_apart(caller.rank, true);
      return gone >= 0 || is_parted;
    });
  } catch (...) {
    if (recoveries_ == before) give_up();
    throw;
  }
  if (recoveries_ != before) return;
  give_up();
  if (is_parted) raise_apart(caller);
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
  self.apart = -1;
  self.parted_from = nullptr;
  const auto is_settled = [&] {
    return shrinks_ != before || std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
             return rank.is_shrinking || rank.has_left || rank.is_left_out;
           });
  };
  note_meeting(in_root(caller.rank), caller.op);
  const auto is_parted = [&] {
    return self.apart >= 0 || (shrinks_ == before && is_apart(caller.rank, false));
  };
  try {
    part_meetings();
    if (!self.is_left_out) {
      wait_interruptibly(self.wake, lock, caller.deadline(),
                         [&] { return is_parted() || is_settled(); });
      if (is_parted()) raise_apart(caller);
    }
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
    each.parted_from = nullptr;
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
