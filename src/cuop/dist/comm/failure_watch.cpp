#include "cuop/dist/comm/failure_watch.h"

#include <algorithm>
#include <chrono>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/checks.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a rank that gives up waits for the answers of the others, which take microseconds when
/// they run and some milliseconds when they have to be scheduled; longer while several are missing,
/// because only one of them may be the cause.
constexpr double kEnquirySeconds = 0.1;
constexpr double kLongEnquirySeconds = 1.0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

FailureWatch::FailureWatch(std::shared_ptr<Transport> transport,
                           std::shared_ptr<FailureWatch> parent, std::vector<int> members)
    : transport_(std::move(transport)),
      parent_(std::move(parent)),
      members_(std::move(members)),
      mutex_(parent_ ? parent_->mutex_ : std::make_shared<std::recursive_mutex>()),
      meets_(static_cast<size_t>(transport_->size()), 0),
      calls_epoch_(epoch()),
      survivors_(transport_->size()),
      doomed_(static_cast<size_t>(transport_->size())),
      parted_from_(static_cast<size_t>(transport_->size())) {}

int64_t FailureWatch::epoch() const {
  const Lock lock(*mutex_);
  return recoveries_ + (parent_ ? parent_->epoch() : 0);
}

FailureWatch::Waiting::Waiting(FailureWatch& watch, std::string_view op, int peer)
    : root_(watch.root()) {
  const Lock lock(*root_.mutex_);
  const int awaited = watch.in_root(peer);
  root_.waits_.push_front(
      {root_.transport_->rank(), ControlKind::kPong, 0, awaited, cat(op, " for rank ", awaited)});
  place_ = root_.waits_.begin();
}

FailureWatch::Waiting::~Waiting() {
  const Lock lock(*root_.mutex_);
  root_.waits_.erase(place_);
}

int FailureWatch::in_root(int rank) const {
  return parent_ ? parent_->in_root(members_[static_cast<size_t>(rank)]) : rank;
}

/// "rank 1"; of a part "rank 1 (rank 3 of all)".
std::string FailureWatch::named(int rank) const {
  if (!parent_) return cat("rank ", rank);
  return cat("rank ", rank, " (rank ", in_root(rank), " of all)");
}

std::string FailureWatch::where(std::string_view op) const {
  return cat(op, ": rank ", transport_->rank(), " of ", transport_->size());
}

void FailureWatch::tell_others(ControlKind kind, int64_t epoch, int blamed,
                               const std::string& text) noexcept {
  for (int rank = 0; rank < transport_->size(); ++rank) {
    if (rank == transport_->rank()) continue;
    transport_->send_control(rank, {transport_->rank(), kind, epoch, blamed, text});
  }
}

void FailureWatch::set_failure(std::string text, int blamed) {
  if (is_failed()) return;  // the first one is the cause of the others
  failure_ = {text.empty() ? "no reason was given" : std::move(text), blamed, epoch()};
  is_reported_ = false;
  if (!parent_) transport_->note_failure(true);
  for (FailureWatch* each = parent_.get(); each && blamed >= 0; each = each->parent_.get()) {
    each->part_failure_ = {"", blamed, each->epoch()};
  }
}

/// Fails here and tells all other ranks, before this one may leave.
void FailureWatch::fail_all(const std::string& text, int blamed) noexcept {
  if (is_failed()) return;
  set_failure(text, blamed);
  tell_others(ControlKind::kAbort, epoch(), blamed, text);
  transport_->flush();
}

/// Fails as another rank did. This one leaves its wait, answers no ping and may end: for a rank
/// that the other's own message has not reached yet it would be the cause.
void FailureWatch::pass_on(const Control& abort) noexcept {
  if (is_failed()) return;
  set_failure(abort.text, abort.blamed);
  tell_others(ControlKind::kPassedOn, epoch(), failure_.rank, failure_.text);
  transport_->flush();
}

void FailureWatch::take(const Control& message) {
  const auto src = static_cast<size_t>(message.src);
  const bool is_of_epoch =
      message.kind == ControlKind::kAbort || message.kind == ControlKind::kPassedOn ||
      message.kind == ControlKind::kRefusal || message.kind == ControlKind::kRefusedMessage;
  if (is_of_epoch && message.epoch > epoch()) early_.push_back(message);
  if (is_of_epoch && message.epoch != epoch()) return;
  switch (message.kind) {
    case ControlKind::kAbort:
    case ControlKind::kPassedOn:
      pass_on(message);
      // What others made of this rank's refusal is no news here.
      if (failure_.text.starts_with(refusal_by(transport_->rank()))) is_reported_ = true;
      break;
    case ControlKind::kRefusal:
      enter_epoch();
      refusals_.push_back({message.src, message.blamed, message.text});
      break;
    case ControlKind::kRefusedMessage:
      enter_epoch();
      refused_messages_[message.src] = {message.src, message.blamed, message.text};
      break;
    case ControlKind::kMeet:
      if (heartbeat()) heartbeat()->note_life(in_heartbeat(message.src));
      meets_[src] = std::max(meets_[src], message.epoch);
      note_coming(message.src);
      break;
    case ControlKind::kHere:
      if (heartbeat()) heartbeat()->note_life(in_heartbeat(message.src));
      survivors_.take_here(message.src, message.epoch);
      note_coming(message.src);
      break;
    case ControlKind::kSurvivors:
      survivors_.take_list(message.src, message.epoch, message.text);
      break;
    case ControlKind::kMeetGivenUp:
    case ControlKind::kHereGivenUp:
      take_back(message);
      break;
    case ControlKind::kPing:
      answer_ping(message);
      break;
    case ControlKind::kPong:
      if (message.blamed < 0 || message.blamed >= transport_->size()) break;  // nobody
      if (const auto found = enquiries_.find(message.epoch); found != enquiries_.end()) {
        found->second[src].push_back(message);
      }
      break;
  }
}

/// Who waits for nobody is what the others wait for, and says nothing.
void FailureWatch::answer_ping(const Control& ping) {
  for (Control answer : waits_) {
    answer.epoch = ping.epoch;
    transport_->send_control(ping.src, answer);
  }
}

void FailureWatch::poll() {
  const Lock lock(*mutex_);
  if (parent_) parent_->poll();
  while (const auto message = transport_->poll_control()) take(*message);
  if (!early_.empty()) {
    const std::vector<Control> early = std::move(early_);
    early_.clear();
    for (const Control& message : early) take(message);
  }
  settle_refusals();
}

void FailureWatch::check(std::string_view op) {
  const Lock lock(*mutex_);
  poll();
  if (parent_) parent_->check(op);
  if (!is_failed()) return;
  is_reported_ = true;
  throw error_in(op, cat(where(op), " cannot go on: ", failure_.text), failure_.rank);
}

void FailureWatch::fail(std::string_view op, int blamed, const std::string& what) {
  const Lock lock(*mutex_);
  const std::string text = cat(where(op), " ", what);
  fail_all(text, in_root(blamed));
  is_reported_ = true;
  throw error_in(op, text, in_root(blamed));
}

void FailureWatch::tell(std::string_view op, const std::string& what) {
  const Lock lock(*mutex_);
  poll();
  fail_all(cat(where(op), " failed: ", what), in_root(transport_->rank()));
  is_reported_ = true;
}

void FailureWatch::give_up(std::string_view op, int blamed, const std::string& what, bool is_gone) {
  // Flags are faster than messages, which say more.
  constexpr double kMessageSeconds = 0.1;
  const Clock::time_point start = Clock::now();
  for (int looks = 0; seconds_since(start) < kMessageSeconds; ++looks) {
    check(op);
    transport_->idle(looks);
  }
  const Lock lock(*mutex_);
  const std::string text = cat(where(op), ' ', what);
  if (is_gone) fail_family(op, text, blamed);
  fail_all(text, blamed);
  is_reported_ = true;
  throw error_in(op, text, blamed);
}

/// This rank raises what fails the whole family.
void FailureWatch::fail_family(std::string_view op, const std::string& text, int blamed) {
  root().fail_all(text, blamed);
  root().is_reported_ = true;
  throw error_in(op, text, blamed);
}

void FailureWatch::lose(std::string_view op, int peer, const std::string& what) {
  const Lock lock(*mutex_);
  const std::string_view meeting = meeting_of(peer);
  const std::string text =
      meeting.empty() ? cat(" lost ", named(peer), ": ", what)
                      : cat(" waits for ", named(peer), ", which has called ", meeting, ": ", what);
  fail_family(op, where(op) + text, in_root(peer));
}

/// Of the root: what all processes wait for. Raises when the communicator fails meanwhile.
FailureWatch::Answers FailureWatch::enquire(std::string_view op) {
  const auto ranks = static_cast<size_t>(transport_->size());
  int64_t enquiry = 0;
  {
    const Lock lock(*mutex_);
    enquiry = ++last_enquiry_;
    enquiries_[enquiry].resize(ranks);
    tell_others(ControlKind::kPing, enquiry, -1, "");
  }
  struct End {
    FailureWatch& watch;
    int64_t enquiry;
    ~End() {
      const Lock lock(*watch.mutex_);
      watch.enquiries_.erase(enquiry);
    }
  } const end{*this, enquiry};
  const Clock::time_point start = Clock::now();
  for (int looks = 0;; ++looks) {
    {
      const Lock lock(*mutex_);
      check(op);
      Answers& answers = enquiries_[enquiry];
      const auto missing = std::count_if(answers.begin(), answers.end(),
                                         [](const auto& each) { return each.empty(); }) -
                           1;  // this rank does not ask itself
      const double patience = missing > 1 ? kLongEnquirySeconds : kEnquirySeconds;
      if (missing == 0 || seconds_since(start) > patience) {
        return answers;
      }
    }
    transport_->idle(looks);
  }
}

void FailureWatch::expire(std::string_view op, int peer, double seconds) {
  const Answers answers = root().enquire(op);
  check(op);
  const Lock lock(*mutex_);
  std::vector<Waits> waits;
  for (const auto& each : answers) {
    Waits& of_rank = waits.emplace_back();
    for (const Control& answer : each) of_rank.push_back(answer.blamed);
  }
  std::vector<int> members;
  for (int rank = 0; rank < transport_->size(); ++rank) members.push_back(in_root(rank));
  const int silent = find_silent(waits, root().transport_->rank(), {in_root(peer)}, members);
  std::string what = cat(" waited ", seconds, " s for ", named(peer));
  // Who meets elsewhere waits for nobody in particular, and lives.
  if (const std::string_view meeting = meeting_of(peer); !meeting.empty()) {
    fail(op, peer, cat(what.substr(1), ", which has called ", meeting));
  }
  if (silent < 0) {
    what += cat(", which is in ", answers[static_cast<size_t>(in_root(peer))][0].text);
    fail(op, peer, what.substr(1));
  }
  what += cat("; not answering: rank ", silent, parent_ ? " of all" : "");
  fail_family(op, where(op) + what, silent);
}

CommunicationError FailureWatch::error_in(std::string_view op, const std::string& text,
                                          int blamed) {
  return {text, blamed, {std::string(op), calls()}};
}

int64_t FailureWatch::calls() {
  const Lock lock(*mutex_);
  enter_epoch();
  return calls_;
}

void FailureWatch::enter_epoch() {
  if (calls_epoch_ == epoch()) return;
  calls_epoch_ = epoch();
  calls_ = 0;
  own_refusals_.clear();
  refusals_.clear();
  refused_messages_.clear();
}

std::string FailureWatch::refusal_by(int rank) const {
  return cat("rank ", rank, " of ", transport_->size(), " refused its arguments: ");
}

void FailureWatch::settle_refusals() {
  enter_epoch();
  std::erase_if(refusals_, [&](const Refusal& refusal) {
    if (refusal.call > calls_) return false;
    if (!own_refusals_.contains(refusal.call)) {
      fail_all(refusal_by(refusal.rank) + refusal.text, in_root(refusal.rank));
    }
    return true;
  });
}

void FailureWatch::begin_call(std::string_view op) {
  const Lock lock(*mutex_);
  enter_epoch();
  ++calls_;
  check(op);
  count_collective_call();
}

void FailureWatch::refuse_call(const std::string& text) noexcept {
  const Lock lock(*mutex_);
  enter_epoch();
  own_refusals_.insert(++calls_);
  count_collective_call();
  tell_others(ControlKind::kRefusal, epoch(), calls_, text);
  transport_->flush();
}

void FailureWatch::refuse_message(const std::string& text) noexcept {
  const Lock lock(*mutex_);
  enter_epoch();
  tell_others(ControlKind::kRefusedMessage, epoch(), calls_, text);
  transport_->flush();
}

void FailureWatch::check_message(std::string_view op, int peer) {
  const Lock lock(*mutex_);
  const auto found = refused_messages_.find(peer);
  // A rank that has come to the next collective call since then has gone on.
  if (found == refused_messages_.end() || found->second.call != calls_) return;
  fail(op, peer, cat("waits for ", named(peer), ", which refused a message: ", found->second.text));
}

void FailureWatch::abort(const std::string& reason, int failed) noexcept {
  const Lock lock(*mutex_);
  poll();
  // What has failed around this communicator, or a part of it, has caused this too.
  int blamed = failed >= 0 ? failed : in_root(transport_->rank());
  if (part_failure_.epoch == epoch()) blamed = part_failure_.rank;
  for (const FailureWatch* each = parent_.get(); each; each = each->parent_.get()) {
    if (each->is_failed()) blamed = each->failure_.rank;
  }
  fail_all(cat("rank ", transport_->rank(), " of ", transport_->size(), " aborted: ", reason),
           blamed);
  is_reported_ = true;
}

std::string FailureWatch::failure() {
  const Lock lock(*mutex_);
  poll();
  if (is_failed()) return failure_.text;
  return parent_ ? parent_->failure() : "";
}

int FailureWatch::blamed() {
  const Lock lock(*mutex_);
  if (is_failed()) return failure_.rank;
  return parent_ ? parent_->blamed() : -1;
}

bool FailureWatch::is_reported() {
  const Lock lock(*mutex_);
  poll();
  if (is_failed()) return is_reported_;
  return parent_ && parent_->is_reported();
}

}  // namespace cuop::dist
