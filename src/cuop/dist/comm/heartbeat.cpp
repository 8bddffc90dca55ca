#include "cuop/dist/comm/heartbeat.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <set>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

/// Of what time has passed between two looks so much counts as silence: the rest of it this process
/// was stopped itself.
constexpr double kMostBetweenLooks = 2 * Heartbeat::kBeatSeconds;

int open_process(int64_t process) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0));
}

bool has_ended(int process) {
  pollfd query{process, POLLIN, 0};
  return poll(&query, 1, 0) > 0;
}

/// The pages of this process, which say at its regular end that it has left. A fork's end is not
/// its end.
class OwnPages {
 public:
  static OwnPages& instance() {
    static auto* pages = new OwnPages;  // outlives all statics
    return *pages;
  }
  void add(HeartbeatPage& page) {
    const std::lock_guard lock(mutex_);
    pages_.insert(&page);
  }
  void remove(HeartbeatPage& page) {
    const std::lock_guard lock(mutex_);
    pages_.erase(&page);
    if (page.place().process == getpid()) page.set_left();
  }

 private:
  OwnPages() {
    std::atexit([] { instance().leave(); });
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    for (HeartbeatPage* page : pages_) {
      if (page->place().process == getpid()) page->set_left();
    }
  }
  std::mutex mutex_;
  std::set<HeartbeatPage*> pages_;
};

}  // namespace

double Heartbeat::limit_of_environment() {
  const auto& given = env().heartbeat_timeout;
  if (given.value == 0.0) return std::numeric_limits<double>::infinity();
  if (given.value >= kLeastLimit) return given.value;
  throw ExecutionError(cat(given.name, ": ", given.value, " seconds were given, possible are ",
                           kLeastLimit, " and more, and 0 or inf for no limit"));
}

Heartbeat::Heartbeat(double limit) : limit_(limit), process_(getpid()) {
  try {
    own_ = HeartbeatPage::make();
    OwnPages::instance().add(own_);
  } catch (const CommunicationError& error) {
    log(LogLevel::kWarn, error.what(), "; other ranks know this one by its connection alone");
  }
}

Heartbeat::~Heartbeat() {
  if (own_.is_open()) OwnPages::instance().remove(own_);
  if (!thread_.joinable()) return;
  if (process_ != getpid()) {  // a fork, which has no such thread
    thread_.detach();
    return;
  }
  is_ending_ = true;
  alarm_.ring();
  thread_.join();
}

void Heartbeat::watch(int rank, std::span<const PagePlace> places) {
  peers_ = std::vector<Peer>(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    open(peers_[i], places[i]);
    if (static_cast<int>(i) == rank) peers_[i].process.close();  // it does not outlive itself
  }
  // Signals are for the threads that the program knows of.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Heartbeat::open(Peer& peer, const PagePlace& place) {
  // The process first: while it has not ended, nobody else has its number.
  if (place.host != own_.place().host || place.process <= 0) return;
  peer.process = Descriptor(open_process(place.process));
  peer.page = HeartbeatPage::open(place);
  if (peer.process.is_open() && has_ended(peer.process.get())) {
    peer.life = Life::kDead;
    peer.process.close();
    has_missing_ = true;
  } else if (peer.page.is_open()) {
    peer.signs = peer.page.signs_of_life();
    peer.life = Life::kBeating;
  } else {
    peer.process.close();
  }
}

/// What has been seen since the last look, `seconds` ago.
void Heartbeat::look(Peer& peer, double seconds) {
  if (peer.life == Life::kUnwatched || peer.life == Life::kDead) return;
  if (peer.page.has_left()) {
    peer.life = Life::kLeft;
    return;
  }
  const int64_t signs = peer.page.signs_of_life();
  if (signs != peer.signs) {
    peer.signs = signs;
    peer.silence = 0.0;
    peer.life = Life::kBeating;
    return;
  }
  peer.silence = peer.silence + std::min(seconds, kMostBetweenLooks);
  if (peer.silence > limit_) peer.life = Life::kStopped;
}

void Heartbeat::run() {
  double last = steady_seconds();
  std::vector<pollfd> awaited;
  std::vector<Peer*> processes;
  while (!is_ending_) {
    awaited.assign(1, {alarm_.descriptor(), POLLIN, 0});
    processes.clear();
    for (Peer& peer : peers_) {
      if (!peer.process.is_open()) continue;
      awaited.push_back({peer.process.get(), POLLIN, 0});
      processes.push_back(&peer);
    }
    const double left = std::max(0.0, last + kBeatSeconds - steady_seconds());
    poll(awaited.data(), awaited.size(), static_cast<int>(std::ceil(left * 1000)));
    for (size_t i = 0; i < processes.size(); ++i) {
      if (awaited[i + 1].revents == 0) continue;
      Peer& peer = *processes[i];
      peer.process.close();
      peer.life = peer.page.has_left() ? Life::kLeft : Life::kDead;
    }
    const double now = steady_seconds();
    if (now - last >= kBeatSeconds) {
      if (own_.is_open()) own_.beat();
      for (Peer& peer : peers_) look(peer, now - last);
      last = now;
    }
    has_missing_ = std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return peer.life == Life::kDead || peer.life == Life::kStopped;
    });
  }
}

/// A rank that runs again may be met before the next look at it.
Heartbeat::Life Heartbeat::life(int rank) const {
  const Peer& other = peer(rank);
  const Life life = other.life;
  const bool runs_again = life == Life::kStopped && other.page.signs_of_life() != other.signs;
  return runs_again ? Life::kBeating : life;
}

std::vector<CallNote> Heartbeat::calls(int rank) const {
  return peer(rank).page.is_open() ? peer(rank).page.calls() : std::vector<CallNote>();
}

int64_t Heartbeat::last_number(int rank) const {
  return peer(rank).page.is_open() ? peer(rank).page.last_number() : 0;
}

double Heartbeat::seconds_in(int rank, const CallNote& call) const {
  return static_cast<double>(peer(rank).page.beats() - call.since) * kBeatSeconds;
}

std::string Heartbeat::obituary(int rank) const {
  const bool is_dead = life(rank) == Life::kDead;
  std::string text =
      cat("its process", process(rank) > 0 ? cat(" ", process(rank)) : "",
          is_dead ? " has died"
                  : cat(" has shown no heartbeat for ", std::round(silence(rank) * 10) / 10, " s"));
  const std::vector<CallNote> in = calls(rank);
  if (in.empty()) return text;
  return cat(text, ", in ", in[0].operation, " (call ", in[0].number, ")");
}

}  // namespace cuop::dist
