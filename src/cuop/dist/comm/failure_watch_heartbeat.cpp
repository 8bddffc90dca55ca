// What the failure watch makes of the heartbeats: who is gone, who is in which call.
#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/comm/failure_watch.h"

namespace cuop::dist {

namespace {

using Life = Heartbeat::Life;
using State = RankHealth::State;

State state_of(Life life) {
  switch (life) {
    case Life::kBeating:
      return State::kAlive;
    case Life::kStopped:
      return State::kStopped;
    case Life::kLeft:
      return State::kLeft;
    case Life::kDead:
      return State::kDead;
    case Life::kSilent:
      return State::kLost;
    case Life::kUnwatched:
      break;
  }
  return State::kUnwatched;
}

/// Of what another rank says, which may be nonsense.
std::string words_of(const CallShape& shape) {
  const bool is_known =
      shape.dtype < kDTypeCount && shape.op <= static_cast<uint8_t>(ReduceKind::kNorm);
  if (!is_known) return cat("root ", shape.root, ", count ", shape.count, " of something else");
  const Collective call{.root = shape.root,
                        .count = shape.count,
                        .dtype = static_cast<DType>(shape.dtype),
                        .op = static_cast<ReduceKind>(shape.op)};
  return call.words();
}

}  // namespace

void FailureWatch::set_heartbeat(std::shared_ptr<Heartbeat> heartbeat, std::vector<int> places) {
  heartbeat_ = std::move(heartbeat);
  places_ = std::move(places);
}

int FailureWatch::in_heartbeat(int rank) {
  return root().places_[static_cast<size_t>(in_root(rank))];
}

void FailureWatch::check_heartbeats(std::string_view op, int peer, const Collective* call) {
  if (!heartbeat()) return;
  if (heartbeat()->has_missing()) {
    check_missing(op, peer);
    for (int rank = 0; call != nullptr && rank < transport_->size(); ++rank)
      check_missing(op, rank);
  }
  if (call != nullptr) check_same_call(*call, peer);
}

void FailureWatch::check_missing(std::string_view op, int rank) {
  const int place = in_heartbeat(rank);
  const Life life = heartbeat()->life(place);
  if (!Heartbeat::is_missing(life)) return;
  check(op);  // somebody else may have told the same before
  const Lock lock(*mutex_);
  const std::string why = heartbeat()->obituary(place);
  if (life == Life::kDead) lose(op, rank, why);
  fail_family(op, cat(where(op), " waits; not answering: ", named(rank), ": ", why), in_root(rank));
}

/// Collective calls of one number are the same call on all ranks, or never meet.
void FailureWatch::check_same_call(const Collective& call, int peer) {
  const std::string_view op = call.name();
  for (const CallNote& other : heartbeat()->calls(in_heartbeat(peer))) {
    const bool is_this_call = other.is_collective && other.context == transport_->context() &&
                              other.epoch == epoch() && other.number == calls();
    if (!is_this_call) continue;
    const bool is_same = other.operation == op.substr(0, other.operation.size());
    if (is_same && other.shape == shape_of(call)) continue;
    check(op);
    fail(op, peer,
         is_same
             ? cat("was called with ", call.words(), "; ", named(peer), " with ",
                   words_of(other.shape))
             : cat("met ", named(peer), " in ", other.operation, ": both are call ", other.number));
  }
}

/// Of the root: a rank by its place in the heartbeat.
SeenRank FailureWatch::seen(int place) const {
  SeenRank rank;
  RankHealth& health = rank.health;
  health.state = state_of(heartbeat_->life(place));
  health.silence = heartbeat_->silence(place);
  health.number = heartbeat_->last_number(place);
  bool is_first = true;
  for (CallNote& call : heartbeat_->calls(place)) {
    const double seconds = heartbeat_->seconds_in(place, call);
    if (call.awaited >= 0) rank.awaited.push_back(call.awaited);
    // Of several calls on several threads the one that moves on says that the rank does.
    if (!is_first && seconds >= health.seconds) continue;
    is_first = false;
    health.operation = std::move(call.operation);
    health.number = call.number;
    health.seconds = seconds;
    health.waits_for = call.awaited;
  }
  return rank;
}

std::vector<RankHealth> FailureWatch::health() {
  poll();
  const int size = transport_->size();
  std::vector<RankHealth> ranks(static_cast<size_t>(size));
  if (!heartbeat()) {
    for (int rank = 0; rank < size; ++rank) {
      RankHealth& health = ranks[static_cast<size_t>(rank)];
      if (rank != transport_->rank()) health.state = State::kUnwatched;
      if (health.state == State::kUnwatched && transport_->is_lost(rank)) {
        health.state = State::kLost;
      }
    }
    return ranks;
  }
  std::vector<SeenRank> all;
  for (int place = 0; place < heartbeat()->ranks(); ++place) all.push_back(root().seen(place));
  mark_stuck(all, heartbeat()->limit());
  std::vector<int> here(all.size(), -1);
  for (int rank = 0; rank < size; ++rank) here[static_cast<size_t>(in_heartbeat(rank))] = rank;
  for (int rank = 0; rank < size; ++rank) {
    RankHealth& health = ranks[static_cast<size_t>(rank)];
    health = std::move(all[static_cast<size_t>(in_heartbeat(rank))].health);
    if (health.waits_for >= 0) health.waits_for = here[static_cast<size_t>(health.waits_for)];
    const bool is_known_otherwise =
        health.state != State::kUnwatched &&
        (health.state != State::kAlive || !heartbeat()->is_elsewhere(in_heartbeat(rank)));
    if (!is_known_otherwise && transport_->is_lost(rank)) health.state = State::kLost;
  }
  return ranks;
}

/// "" for a rank that may come yet.
std::string FailureWatch::why_gone(int rank) {
  if (rank == transport_->rank()) return "";
  const Life life = heartbeat() ? heartbeat()->life(in_heartbeat(rank)) : Life::kUnwatched;
  if (life == Life::kDead) return heartbeat()->obituary(in_heartbeat(rank));
  return life == Life::kLeft || transport_->is_lost(rank) ? "it has ended" : "";
}

bool FailureWatch::is_missing(int rank) {
  if (!why_gone(rank).empty()) return true;
  return rank != transport_->rank() && heartbeat() &&
         Heartbeat::is_missing(heartbeat()->life(in_heartbeat(rank)));
}

}  // namespace cuop::dist
