#include "cuop/dist/comm/failure_watch.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a rank that gives up waits for the answers of the others, which take microseconds when
/// they run and some milliseconds when they have to be scheduled.
constexpr double kEnquirySeconds = 0.1;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string ranks_text(const std::vector<int>& ranks) {
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks));
}

}  // namespace

FailureWatch::FailureWatch(std::shared_ptr<Transport> transport,
                           std::shared_ptr<FailureWatch> parent)
    : transport_(std::move(transport)),
      parent_(std::move(parent)),
      meets_(static_cast<size_t>(transport_->size()), 0),
      answers_(static_cast<size_t>(transport_->size())) {}

int64_t FailureWatch::epoch() const { return recoveries_ + (parent_ ? parent_->epoch() : 0); }

void FailureWatch::set_activity(std::string_view op, int peer) {
  activity_ = op;
  activity_peer_ = peer;
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
}

void FailureWatch::take(const Control& message) {
  const auto src = static_cast<size_t>(message.src);
  switch (message.kind) {
    case ControlKind::kAbort:
      if (message.epoch == epoch()) set_failure(message.text, message.blamed);
      if (message.epoch > epoch()) early_aborts_.push_back(message);
      break;
    case ControlKind::kMeet:
      meets_[src] = std::max(meets_[src], message.epoch);
      break;
    case ControlKind::kPing:
      if (activity_peer_ < 0) break;  // who waits for nobody is what the others wait for
      transport_->send_control(message.src, {transport_->rank(), ControlKind::kPong, message.epoch,
                                             -1, cat(activity_, " for rank ", activity_peer_)});
      break;
    case ControlKind::kPong:
      if (message.epoch == enquiry_) answers_[src] = message.text;
      break;
  }
}

void FailureWatch::poll_recent() {
  while (const auto message = transport_->poll_control()) take(*message);
}

void FailureWatch::poll() {
  if (parent_) parent_->poll();
  poll_recent();
  if (early_aborts_.empty()) return;
  const std::vector<Control> early = std::move(early_aborts_);
  early_aborts_.clear();
  for (const Control& message : early) take(message);
}

void FailureWatch::check(std::string_view op) {
  poll();
  if (parent_) parent_->check(op);
  if (!is_failed()) return;
  is_reported_ = true;
  throw CommunicationError(cat(where(op), " cannot go on: ", failure_.text), failure_.rank);
}

void FailureWatch::fail(std::string_view op, int blamed, const std::string& what) {
  const std::string text = cat(where(op), " ", what);
  if (!is_failed()) {
    set_failure(text, blamed);
    tell_others(ControlKind::kAbort, epoch(), blamed, text);
  }
  is_reported_ = true;
  throw CommunicationError(text, blamed);
}

std::vector<int> FailureWatch::silent_ranks() {
  const int64_t enquiry = ++enquiry_;
  std::fill(answers_.begin(), answers_.end(), "");
  tell_others(ControlKind::kPing, enquiry, -1, "");
  const Clock::time_point start = Clock::now();
  std::vector<int> silent;
  for (int looks = 0;; ++looks) {
    poll();
    silent.clear();
    for (int rank = 0; rank < transport_->size(); ++rank) {
      if (rank != transport_->rank() && answers_[static_cast<size_t>(rank)].empty()) {
        silent.push_back(rank);
      }
    }
    if (silent.empty() || seconds_since(start) > kEnquirySeconds) return silent;
    transport_->idle(looks);
  }
}

void FailureWatch::expire(std::string_view op, int peer, double seconds) {
  const std::vector<int> silent = silent_ranks();
  check(op);  // another rank may have given up meanwhile
  std::string what = cat("waited ", seconds, " s for rank ", peer);
  if (!silent.empty()) {
    what += cat("; not answering: ", ranks_text(silent));
  } else {
    what += ", which is in ";
    what += answers_[static_cast<size_t>(peer)];
  }
  fail(op, silent.size() == 1 ? silent[0] : peer, what);
}

void FailureWatch::abort(const std::string& reason) noexcept {
  poll();
  if (!is_failed()) {
    const std::string text =
        cat("rank ", transport_->rank(), " of ", transport_->size(), " aborted: ", reason);
    set_failure(text, transport_->rank());
    tell_others(ControlKind::kAbort, epoch(), transport_->rank(), text);
  }
  is_reported_ = true;
}

std::string FailureWatch::failure() {
  poll();
  if (is_failed()) return failure_.text;
  return parent_ ? parent_->failure() : "";
}

bool FailureWatch::is_reported() {
  poll();
  if (is_failed()) return is_reported_;
  return parent_ && parent_->is_reported();
}

void FailureWatch::recover(double timeout) {
  poll();
  if (parent_) parent_->check("recover");
  const int64_t wanted = recoveries_ + 1;
  meets_[static_cast<size_t>(transport_->rank())] = wanted;
  tell_others(ControlKind::kMeet, wanted, -1, "");
  const Clock::time_point start = Clock::now();
  std::vector<int> late;
  for (int looks = 0;; ++looks) {
    poll();
    late.clear();
    for (int rank = 0; rank < transport_->size(); ++rank) {
      if (meets_[static_cast<size_t>(rank)] < wanted) late.push_back(rank);
    }
    if (late.empty()) break;
    if (seconds_since(start) > timeout) {
      throw CommunicationError(
          cat(where("recover"), " waited ", timeout, " s for ", ranks_text(late)),
          late.size() == 1 ? late[0] : -1);
    }
    transport_->idle(looks);
  }
  recoveries_ = wanted;
  is_reported_ = false;
  if (!parent_) transport_->note_failure(false);
  poll();  // a rank that was faster may have failed again
}

}  // namespace cuop::dist
