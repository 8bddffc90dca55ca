#include "cuop/dist/comm/socket_admission.h"

#include <algorithm>

#include "cuop/core/error.h"

namespace cuop::dist {

namespace {

/// A host that does not answer at all is as good as one where nobody listens.
constexpr double kConnectSeconds = 5.0;
/// Whoever listens may be a busy rank: to leave it early only makes it begin anew.
constexpr double kAnswerSeconds = 5.0;
constexpr double kPauseSeconds = 0.02;  // before the next try

/// Reads until `heard` has `size` bytes and never one more; whether it has.
bool hear_from(Socket& link, std::string& heard, size_t size) {
  char bytes[256];
  while (heard.size() < size) {
    const int64_t got =
        link.read_some(bytes, static_cast<int64_t>(std::min(sizeof(bytes), size - heard.size())));
    if (got == 0) return false;
    heard.append(bytes, static_cast<size_t>(got));
  }
  return true;
}

/// A few bytes on a fresh connection go at once, or there is something wrong with it.
void say(Socket& link, std::string_view words) {
  const auto bytes = static_cast<int64_t>(words.size());
  if (link.write_some(words.data(), bytes) != bytes) {
    throw CommunicationError("socket: the other side does not read");
  }
}

}  // namespace

void Admission::add_interests(std::vector<Interest>& interests) const {
  for (const Socket& each : listeners_) interests.push_back({each.descriptor(), false});
  for (const Visitor& each : visitors_) interests.push_back({each.link.descriptor(), false});
}

/// Who has greeted knows the job's secret, and strangers do not drive it out.
void Admission::make_room() {
  const auto stranger =
      std::ranges::find_if(visitors_, [](const Visitor& each) { return !each.who; });
  visitors_.erase(stranger != visitors_.end() ? stranger : visitors_.begin());
}

void Admission::accept_all(const Socket& listener) {
  // Not for ever, however fast they come: those who are here are to be heard too.
  for (size_t i = 0; i < kMostVisitors; ++i) {
    bool is_exhausted = false;
    Socket link = accept_one(listener, is_exhausted);
    if ((is_exhausted || visitors_.size() == kMostVisitors) && !visitors_.empty()) {
      make_room();
      if (is_exhausted) continue;
    }
    if (!link.is_open()) return;
    const Door door{rank_, port_of(link)};
    Visitor visitor{std::move(link), door, make_challenge(), "",
                    steady_seconds() + kGreetingSeconds};
    try {
      say(visitor.link, visitor.challenge);
      visitors_.push_back(std::move(visitor));
    } catch (const CommunicationError&) {  // gone again
    }
  }
}

bool Admission::is_gone(Visitor& visitor,
                        const std::function<void(const Introduction&, Socket)>& admit) {
  try {
    if (!visitor.who) {
      if (!hear_from(visitor.link, visitor.heard, kGreetingBytes)) {
        return steady_seconds() > visitor.deadline;
      }
      visitor.who = check_greeting(job_, visitor.challenge, visitor.door, visitor.heard);
      if (!visitor.who) {
        ++refused_;
        return true;
      }
      say(visitor.link, make_welcome(job_, visitor.challenge, visitor.door, visitor.heard));
      visitor.deadline = steady_seconds() + kArrivalSeconds;
    }
    if (!hear_from(visitor.link, visitor.heard, kGreetingBytes + kArrival.size())) {
      return steady_seconds() > visitor.deadline;
    }
    admit(*visitor.who, std::move(visitor.link));
  } catch (const CommunicationError&) {  // gone again
  }
  return true;
}

void Admission::advance(const std::function<void(const Introduction&, Socket)>& admit) {
  for (const Socket& each : listeners_) accept_all(each);
  std::erase_if(visitors_, [&](Visitor& visitor) { return is_gone(visitor, admit); });
}

Visit::Visit(Job job, Introduction self, int wanted, Place place, bool listens)
    : job_(std::move(job)),
      self_(std::move(self)),
      wanted_(wanted),
      place_(std::move(place)),
      listens_(listens) {}

void Visit::add_interests(std::vector<Interest>& interests) const {
  if (link_.is_open()) interests.push_back({link_.descriptor(), state_ == State::kConnecting});
}

void Visit::enter(State state, double seconds) {
  state_ = state;
  time_ = steady_seconds() + seconds;
  heard_.clear();
}

void Visit::fail() {
  link_.close();
  listener_.close();
  enter(State::kIdle, kPauseSeconds);
}

bool Visit::advance() {
  if (state_ == State::kIdle && steady_seconds() < time_) return false;
  try {
    if (state_ == State::kIdle) begin();
    const bool is_in = step();
    if (!is_in && state_ != State::kIdle && steady_seconds() > time_) fail();
    return is_in;
  } catch (const CommunicationError&) {
    was_refused_ |= state_ == State::kHearsWelcome;
    fail();
    return false;
  }
}

void Visit::begin() {
  link_ = start_connect(place_.address, place_.port);
  if (!link_.is_open()) throw CommunicationError("socket: nobody listens there");
  enter(State::kConnecting, kConnectSeconds);
}

bool Visit::step() {
  if (state_ == State::kConnecting) {
    const ConnectState now = connect_state(link_);
    if (now == ConnectState::kPending) return false;
    if (now == ConnectState::kRefused) throw CommunicationError("socket: nobody listens there");
    enter(State::kHearsChallenge, kAnswerSeconds);
  }
  if (state_ == State::kHearsChallenge) {
    if (!hear_from(link_, heard_, kChallengeBytes)) return false;
    if (!is_challenge(heard_)) throw CommunicationError("socket: a stranger listens there");
    greet();
  }
  if (!hear_from(link_, heard_, kWelcomeBytes)) return false;
  const Door door{wanted_, place_.port};
  if (!check_welcome(job_, challenge_, door, greeting_, heard_)) {
    throw CommunicationError("socket: who listens there does not know the job's secret");
  }
  say(link_, kArrival);
  return true;
}

void Visit::greet() {
  challenge_ = heard_;
  if (listens_) {
    listener_ = listen_at(local_address(link_), 0);
    self_.port = port_of(listener_);
  }
  greeting_ = make_greeting(job_, challenge_, {wanted_, place_.port}, self_);
  enter(State::kHearsWelcome, kAnswerSeconds);
  say(link_, greeting_);
}

}  // namespace cuop::dist
