// How ranks meet in `recover` and `shrink`, and what they make of those that do not come or meet
// elsewhere.
#include <algorithm>
#include <chrono>
#include <utility>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/failure_watch.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// What a rank has sent may come so much later than the news of its next call, or of its end.
constexpr auto kOnItsWay = std::chrono::milliseconds(200);
/// A rank whose meeting ends hears of it and gives it up within that time.
constexpr auto kEndsSoon = std::chrono::seconds(2);

/// Whether it is so and was so for as long; `noticed` is when that was seen first.
bool has_lasted(bool is_so, std::optional<Clock::time_point>& noticed) {
  const Clock::time_point now = Clock::now();
  if (!is_so) {
    noticed.reset();
  } else if (!noticed) {
    noticed = now;
  }
  return is_so && now - *noticed > kOnItsWay;
}

}  // namespace

/// While it lives this rank is in a meeting. Unless that is over then, it is given up.
class FailureWatch::Coming : NonCopyable {
 public:
  Coming(FailureWatch& watch, Meeting meeting, int64_t number)
      : watch_(watch), meeting_(meeting), number_(number) {
    const Lock lock(*watch_.mutex_);
    if (watch_.heartbeat()) watch_.heartbeat()->show_life();
    watch_.meeting_ = meeting;
    watch_.apart_.reset();
    if (meeting_ == Meeting::kRecover) own_meet() = number_;
    watch_.tell_others(is_recovery() ? ControlKind::kMeet : ControlKind::kHere, number_, -1, "");
    watch_.transport_->flush();
  }
  ~Coming() {
    const Lock lock(*watch_.mutex_);
    watch_.meeting_.reset();
    if (is_over_) return;
    if (is_recovery()) {
      own_meet() = number_ - 1;
      watch_.given_up_ = number_;
    } else {
      --watch_.shrinks_;
    }
    const std::optional<Apart>& apart = watch_.apart_;
    watch_.tell_others(is_recovery() ? ControlKind::kMeetGivenUp : ControlKind::kHereGivenUp,
                       number_, apart ? apart->rank : -1, apart ? std::string(apart->meeting) : "");
    watch_.transport_->flush();
  }
  void end() { is_over_ = true; }

 private:
  bool is_recovery() const { return meeting_ == Meeting::kRecover; }
  int64_t& own_meet() { return watch_.meets_[static_cast<size_t>(watch_.transport_->rank())]; }

  FailureWatch& watch_;
  Meeting meeting_;
  int64_t number_;
  bool is_over_ = false;
};

/// "recover" or "shrink" while the rank waits in one, of this communicator or one around it, to
/// which this rank has not come, or has gone on from it; else "".
std::string_view FailureWatch::meeting_of(int peer) const {
  if (peer == transport_->rank()) return "";
  for (const FailureWatch* each = this;; each = each->parent_.get()) {
    if (each->meets_[static_cast<size_t>(peer)] > each->recoveries_) return "recover";
    if (each->survivors_.is_here(peer, each->shrinks_ + 1)) return "shrink";
    if (!each->parent_) return "";
    peer = each->members_[static_cast<size_t>(peer)];
  }
}

void FailureWatch::check_meeting(std::string_view op, int peer,
                                 std::optional<Clock::time_point>& noticed) {
  const Lock lock(*mutex_);
  const std::string_view meeting = meeting_of(peer);
  if (!has_lasted(!meeting.empty(), noticed)) return;
  fail(op, peer, cat("waits for ", named(peer), ", which has called ", meeting));
}

void FailureWatch::note_coming(int src) {
  doomed_[static_cast<size_t>(src)].reset();
  parted_from_[static_cast<size_t>(src)].reset();
  if (apart_ && apart_->rank == src) apart_.reset();  // that is over
}

/// A rank gives up its meeting. Where that is because some recover and others shrink, those that
/// are in either do so too.
void FailureWatch::take_back(const Control& message) {
  const bool is_recovery = message.kind == ControlKind::kMeetGivenUp;
  int64_t& meet = meets_[static_cast<size_t>(message.src)];
  if (is_recovery) meet = std::min(meet, message.epoch - 1);
  if (!is_recovery) survivors_.take_back_here(message.src, message.epoch);
  auto& doomed = doomed_[static_cast<size_t>(message.src)];
  const bool is_known = std::exchange(doomed, std::nullopt).has_value();
  if (is_known || message.text.empty()) return;
  // For those that come later, when this rank may be gone.
  parted_from_[static_cast<size_t>(message.src)] = {
      is_recovery ? Meeting::kRecover : Meeting::kShrink, message.epoch};
  if (!meeting_) return;
  const bool is_elsewhere = (*meeting_ == Meeting::kRecover) != is_recovery;
  const int other = is_elsewhere ? message.src : message.blamed;
  if (other < 0 || other >= transport_->size() || other == transport_->rank()) return;
  const bool has_recovered = is_elsewhere ? is_recovery : message.text == "recover";
  apart_ = Apart{other, has_recovered ? "recover" : "shrink"};
}

/// Whether the rank was in that meeting, beside the one that this rank is in, and has not come
/// since.
bool FailureWatch::has_parted_from(int rank, Meeting meeting) const {
  const auto& from = parted_from_[static_cast<size_t>(rank)];
  const bool is_shrinking = meeting_ == Meeting::kShrink;
  const int64_t number =
      meeting == Meeting::kRecover ? recoveries_ + 1 : shrinks_ + (is_shrinking ? 0 : 1);
  return from && from->first == meeting && from->second == number;
}

/// The first of `late` that is in another meeting than this rank, and does not leave it anyway; or
/// has left it for that.
std::optional<FailureWatch::Apart> FailureWatch::find_apart(const std::vector<int>& late) const {
  const Clock::time_point now = Clock::now();
  const bool recovers = meeting_ == Meeting::kRecover;
  for (const int rank : late) {
    const auto& doomed = doomed_[static_cast<size_t>(rank)];
    const std::string_view meeting = meeting_of(rank);
    if (!meeting.empty() && !(doomed && now - *doomed < kEndsSoon)) return Apart{rank, meeting};
    if (has_parted_from(rank, recovers ? Meeting::kShrink : Meeting::kRecover)) {
      return Apart{rank, recovers ? "shrink" : "recover"};
    }
  }
  return std::nullopt;
}

/// All that are in a meeting hear why this rank gives its own up, and give up theirs: that is no
/// news when this one comes again.
void FailureWatch::raise_apart(std::string_view op) {
  const int64_t shrink = shrinks_ + (meeting_ == Meeting::kShrink ? 0 : 1);
  for (int rank = 0; rank < transport_->size(); ++rank) {
    const auto place = static_cast<size_t>(rank);
    const bool is_meeting = meets_[place] > recoveries_ || survivors_.is_here(rank, shrink);
    if (is_meeting) doomed_[place] = Clock::now();
    parted_from_[place].reset();
  }
  const auto [rank, meeting] = *apart_;
  throw error_in(op,
                 cat(where(op), " waits for ", named(rank), ", which has called ", meeting,
                     "; all ranks make the same call of the two"),
                 in_root(rank));
}

/// In a recovery to which `late` have not come: raises when one of them is gone or is in another
/// meeting, once what it has sent before would be here.
void FailureWatch::check_late(std::string_view op, const std::vector<int>& late,
                              std::optional<Clock::time_point>& noticed) {
  if (apart_) raise_apart(op);
  // The failed one first: others may have left because of it.
  std::vector<int> asked = late;
  std::stable_partition(asked.begin(), asked.end(),
                        [this, failed = blamed()](int rank) { return in_root(rank) == failed; });
  const auto gone = std::find_if(asked.begin(), asked.end(), [this](int rank) {
    return !why_gone(rank).empty() && !has_parted_from(rank, Meeting::kShrink);
  });
  const std::optional<Apart> apart = find_apart(late);
  if (!has_lasted(gone != asked.end() || apart, noticed)) return;
  if (gone != asked.end()) {
    throw error_in(op,
                   cat(where(op), " waits for ", named(*gone), ": ", why_gone(*gone),
                       "; shrink goes on without it"),
                   in_root(*gone));
  }
  apart_ = apart;
  raise_apart(op);
}

void FailureWatch::recover(double timeout) {
  int64_t wanted = 0;
  {
    const Lock lock(*mutex_);
    poll();
    if (parent_) parent_->check("recover");
    wanted = recoveries_ + 1;
  }
  Coming coming(*this, Meeting::kRecover, wanted);
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> noticed;
  for (int looks = 0;; ++looks) {
    std::vector<int> late;
    {
      const Lock lock(*mutex_);
      poll();
      for (int rank = 0; rank < transport_->size(); ++rank) {
        if (meets_[static_cast<size_t>(rank)] < wanted) late.push_back(rank);
      }
      if (late.empty()) break;
      if (parent_) parent_->check("recover");
      check_late("recover", late, noticed);
    }
    check_interrupt();
    if (std::chrono::duration<double>(Clock::now() - start).count() > timeout) {
      throw error_in("recover",
                     cat(where("recover"), " waited ", timeout, " s for ", ranks_text(late)),
                     late.size() == 1 ? in_root(late[0]) : -1);
    }
    transport_->idle(looks);
  }
  const Lock lock(*mutex_);
  coming.end();
  recoveries_ = wanted;
  is_reported_ = false;
  if (parent_) parent_->part_failure_ = {};
  if (!parent_) transport_->note_failure(false);
  poll();  // a rank that was faster may have failed again
}

template <class Done>
void FailureWatch::wait_until(double timeout, Done&& done) {
  const Clock::time_point start = Clock::now();
  for (int looks = 0;; ++looks) {
    {
      const Lock lock(*mutex_);
      poll();
      if (done()) return;
    }
    check_interrupt();
    if (std::chrono::duration<double>(Clock::now() - start).count() > timeout) return;
    transport_->idle(looks);
  }
}

std::vector<int> FailureWatch::agree_on_survivors(double timeout) {
  const int size = transport_->size(), self = transport_->rank();
  Survivors::List list(static_cast<size_t>(size));
  const auto is_listed = [&](int rank) { return list[static_cast<size_t>(rank)]; };
  int64_t shrink = 0;
  {
    const Lock lock(*mutex_);
    shrink = ++shrinks_;
  }
  Coming coming(*this, Meeting::kShrink, shrink);
  std::optional<Clock::time_point> noticed;
  // Who has tried to recover in vain waits for the others, which may follow it.
  const bool is_followed = given_up_ > recoveries_;
  wait_until(timeout, [&] {
    if (apart_ && !is_followed) raise_apart("shrink");
    bool is_any_missing = false;
    std::vector<int> late, parted;
    for (int rank = 0; rank < size; ++rank) {
      list[static_cast<size_t>(rank)] = rank == self || survivors_.is_here(rank, shrink);
      if (is_listed(rank)) continue;
      if (has_parted_from(rank, Meeting::kRecover)) parted.push_back(rank);
      const bool is_gone = is_missing(rank);
      is_any_missing = is_any_missing || is_gone;
      if (!is_gone) late.push_back(rank);
    }
    if (is_followed) return late.empty();
    // Where a rank is missing the recovery of others is in vain, and they may follow too.
    if (parted.empty() && (late.empty() || is_any_missing)) return late.empty();
    const std::optional<Apart> apart = find_apart(parted.empty() ? late : parted);
    if (!has_lasted(apart.has_value(), noticed)) return false;
    apart_ = apart;
    raise_apart("shrink");
  });
  for (int turn = 0; turn < size; ++turn) {
    if (!is_listed(turn)) continue;
    if (turn == self) {
      const Lock lock(*mutex_);
      tell_others(ControlKind::kSurvivors, shrink, -1, Survivors::text_of(list));
      transport_->flush();
      continue;
    }
    wait_until(timeout, [&] { return survivors_.list_of(turn, shrink) || is_missing(turn); });
    if (const Survivors::List* told = survivors_.list_of(turn, shrink)) list = *told;
    if (is_listed(self)) continue;
    coming.end();  // for the others it is
    throw error_in("shrink", cat(where("shrink"), " was left out: the others go on without it"),
                   in_root(self));
  }
  coming.end();
  std::vector<int> survivors;
  for (int rank = 0; rank < size; ++rank) {
    if (is_listed(rank)) {
      survivors.push_back(rank);
    } else if (!why_gone(rank).empty()) {
      transport_->note_gone(rank);
    }
  }
  return survivors;
}

}  // namespace cuop::dist
