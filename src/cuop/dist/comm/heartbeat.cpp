#include "cuop/dist/comm/heartbeat.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <system_error>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

/// Of what time has passed between two looks so much counts as silence: the rest of it this process
/// was stopped itself.
constexpr double kMostBetweenLooks = 2 * Heartbeat::kBeatSeconds;
/// After so long without a beat of a rank another one reports for their host.
constexpr double kTakeOver = 3 * Heartbeat::kBeatSeconds;

int open_process(int64_t process) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0));
}

bool has_ended(int process) {
  pollfd query{process, POLLIN, 0};
  return poll(&query, 1, 0) > 0;
}

/// Silence of a process that wants to run, in limits, until it counts as stopped all the same.
constexpr double kStarving = 4;

/// Whether a thread of the process waits for a processor or has one, which none of a stopped
/// process does.
bool wants_to_run(int64_t process) {
  std::error_code error;
  std::filesystem::directory_iterator tasks(cat("/proc/", process, "/task"), error);
  for (; !error && tasks != std::filesystem::directory_iterator(); tasks.increment(error)) {
    std::ifstream file(tasks->path() / "stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    // "4711 (name) R ...", where the name may be of any characters
    const size_t name_end = text.rfind(") ");
    if (name_end != std::string::npos && text.compare(name_end + 2, 2, "R ") == 0) return true;
  }
  return false;
}

/// The heartbeats of this process, which say at its regular end that it has left.
class OwnHeartbeats {
 public:
  static OwnHeartbeats& instance() {
    static auto* heartbeats = new OwnHeartbeats;  // outlives all statics
    return *heartbeats;
  }
  void add(Heartbeat& heartbeat) {
    const std::lock_guard lock(mutex_);
    all_.insert(&heartbeat);
  }
  void remove(Heartbeat& heartbeat) {
    const std::lock_guard lock(mutex_);
    all_.erase(&heartbeat);
    heartbeat.leave();
  }

 private:
  OwnHeartbeats() {
    std::atexit([] { instance().leave(); });
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    for (Heartbeat* each : all_) each->leave();
  }
  std::mutex mutex_;
  std::set<Heartbeat*> all_;
};

}  // namespace

double Heartbeat::limit_of_environment() {
  const auto& given = env().heartbeat_timeout;
  if (given.value == 0.0) return std::numeric_limits<double>::infinity();
  if (given.value >= kLeastLimit) return given.value;
  throw ExecutionError(cat(given.name, ": ", given.value, " seconds were given, possible are ",
                           kLeastLimit, " and more, and 0 or inf for no limit"));
}

Heartbeat::Heartbeat(double limit) : limit_(limit) {
  try {
    own_ = HeartbeatPage::make();
    OwnHeartbeats::instance().add(*this);
  } catch (const CommunicationError& error) {
    log(LogLevel::kWarn, error.what(), "; other ranks know this one by its connection alone");
  }
}

Heartbeat::~Heartbeat() {
  if (own_.is_open()) OwnHeartbeats::instance().remove(*this);
  if (!thread_.joinable()) return;
  if (!process_.is_here()) {  // a fork, which has no such thread
    thread_.detach();
    return;
  }
  is_ending_ = true;
  alarm_.ring();
  thread_.join();
}

/// A fork's end is not this process's end.
void Heartbeat::leave() {
  if (!own_.is_open() || !process_.is_here()) return;
  own_.set_left();
  if (reports_) reports_->send({{rank_, false, own_.state()}});
}

void Heartbeat::watch(int rank, std::span<const PagePlace> places,
                      std::unique_ptr<HostReports> reports) {
  rank_ = rank;
  reports_ = std::move(reports);
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
  if (place.process <= 0 || !own_.is_open()) return;
  if (place.host != own_.place().host) {
    if (reports_) peer.page = HeartbeatPage::mirror(place);
    return;
  }
  // The process first: while it has not ended, nobody else has its number.
  peer.process = Descriptor(open_process(place.process));
  peer.page = HeartbeatPage::open(place);
  if (peer.process.is_open() && has_ended(peer.process.get())) {
    become(peer, Life::kDead);
    peer.process.close();
  } else if (peer.page.is_open()) {
    peer.signs = peer.page.signs_of_life();
    peer.life = Life::kBeating;
  } else {
    peer.process.close();
  }
}

/// Who sees the life of a rank that is missing sees has_missing() as well.
void Heartbeat::become(Peer& peer, Life life) {
  if (is_missing(life)) has_missing_ = true;
  peer.life = life;
}

/// What has been seen since the last look, `seconds` ago.
void Heartbeat::look(Peer& peer, double seconds) {
  if (peer.life == Life::kUnwatched || peer.life == Life::kDead) return;
  if (peer.page.has_left()) {
    peer.life = Life::kLeft;
    return;
  }
  const double counted = std::min(seconds, kMostBetweenLooks);
  peer.host_silence = peer.host_silence + counted;
  const int64_t signs = peer.page.signs_of_life();
  if (peer.was_heard.exchange(false) || signs != peer.signs) {
    peer.signs = signs;
    peer.silence = 0.0;
    peer.life = Life::kBeating;
    return;
  }
  peer.silence = peer.silence + counted;
  if (peer.silence <= limit_) return;
  const bool is_elsewhere = peer.page.place().host != own_.place().host;
  // A machine that is too busy for all its processes has stopped none of them.
  const bool is_starving = !is_elsewhere && peer.life == Life::kBeating &&
                           peer.silence <= kStarving * limit_ &&
                           wants_to_run(peer.page.place().process);
  if (is_starving) return;
  become(peer, is_elsewhere && peer.host_silence > limit_ ? Life::kSilent : Life::kStopped);
}

bool Heartbeat::is_local(size_t rank) const {
  const HeartbeatPage& page = peers_[rank].page;
  return page.is_open() && page.place().host == own_.place().host;
}

/// Unless a rank before this one does. Should two of them, that does no harm.
bool Heartbeat::reports_for_host() const {
  for (size_t rank = 0; rank < static_cast<size_t>(rank_); ++rank) {
    const bool lives = peers_[rank].life == Life::kBeating && peers_[rank].silence < kTakeOver;
    if (is_local(rank) && lives) return false;
  }
  return true;
}

void Heartbeat::report() {
  if (!reports_ || !reports_for_host()) return;
  std::vector<RankReport> ranks;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!is_local(rank)) continue;
    const Peer& peer = peers_[rank];
    ranks.push_back({static_cast<int>(rank), peer.life == Life::kDead, peer.page.state()});
  }
  reports_->send(ranks);
}

void Heartbeat::hear(const RankReport& report) {
  Peer& peer = peers_[static_cast<size_t>(report.rank)];
  if (!peer.page.is_open()) return;
  const uint64_t host = peer.page.place().host;
  for (Peer& each : peers_) {
    if (each.page.is_open() && each.page.place().host == host) each.host_silence = 0.0;
  }
  // Of two reports on their way the later one may come first.
  if (report.page.beats + report.page.shown >= peer.page.signs_of_life()) {
    peer.page.show(report.page);
  }
  if (peer.life == Life::kLeft || peer.life == Life::kDead) return;
  if (report.is_dead) {
    become(peer, Life::kDead);
  } else if (peer.life == Life::kUnwatched) {
    peer.life = Life::kBeating;
    peer.signs = peer.page.signs_of_life();
  }
}

/// Until a process ends, a report comes or it is time.
void Heartbeat::await_events(double end) {
  std::vector<pollfd> awaited{{alarm_.descriptor(), POLLIN, 0}};
  if (reports_) {
    for (const int each : reports_->descriptors()) awaited.push_back({each, POLLIN, 0});
  }
  const size_t first = awaited.size();
  std::vector<Peer*> processes;
  for (Peer& peer : peers_) {
    if (!peer.process.is_open()) continue;
    awaited.push_back({peer.process.get(), POLLIN, 0});
    processes.push_back(&peer);
  }
  const double left = std::max(0.0, end - steady_seconds());
  poll(awaited.data(), awaited.size(), static_cast<int>(std::ceil(left * 1000)));
  for (size_t i = 0; i < processes.size(); ++i) {
    if (awaited[first + i].revents == 0) continue;
    Peer& peer = *processes[i];
    peer.process.close();
    become(peer, peer.page.has_left() ? Life::kLeft : Life::kDead);
  }
}

void Heartbeat::run() {
  double last = steady_seconds();
  while (!is_ending_) {
    await_events(last + kBeatSeconds);
    if (reports_) reports_->receive([this](const RankReport& report) { hear(report); });
    const double now = steady_seconds();
    if (now - last >= kBeatSeconds) {
      if (own_.is_open()) own_.beat();
      for (Peer& peer : peers_) look(peer, now - last);
      report();
      last = now;
    }
    has_missing_ =
        std::ranges::any_of(peers_, [](const Peer& peer) { return is_missing(peer.life); });
    const std::lock_guard lock(observers_mutex_);
    for (Observer* each : observers_) each->look();
  }
}

void Heartbeat::add(Observer& observer) {
  const std::lock_guard lock(observers_mutex_);
  observers_.insert(&observer);
}

void Heartbeat::remove(Observer& observer) {
  const std::lock_guard lock(observers_mutex_);
  observers_.erase(&observer);
}

/// A rank that runs again may be met before the next look at it.
Heartbeat::Life Heartbeat::life(int rank) const {
  const Peer& other = peer(rank);
  const Life life = other.life;
  const bool is_still = life == Life::kStopped || life == Life::kSilent;
  const bool runs_again =
      is_still && (other.was_heard || other.page.signs_of_life() != other.signs);
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
  const auto rounded = [](double seconds) { return cat(std::round(seconds * 10) / 10, " s"); };
  const Life now = life(rank);
  std::string text = cat("its process", process(rank) > 0 ? cat(" ", process(rank)) : "");
  if (now == Life::kDead) {
    text += " has died";
  } else if (now == Life::kSilent) {
    text = cat("nothing was heard of its host for ", rounded(peer(rank).host_silence));
  } else {
    text += cat(" has shown no heartbeat for ", rounded(silence(rank)));
  }
  const std::vector<CallNote> in = calls(rank);
  if (in.empty()) return text;
  return cat(text, ", in ", in[0].operation, " (call ", in[0].number, ")");
}

}  // namespace cuop::dist
