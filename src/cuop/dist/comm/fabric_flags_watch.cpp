// What becomes of streams that wait for a rank that does not come any more. No look calls the
// driver, which may be waiting for those streams itself.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/home_process.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/fabric_flags.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist::fabric {

using backend::cuda::Flag;
using backend::cuda::has_reached;
using Life = Heartbeat::Life;

namespace {

/// Between the marks that say that what is received means nothing and the end of the waits: others
/// pass the marks on, through communicators that this process has no part in.
constexpr double kBeforeRelease = 2 * Heartbeat::kBeatSeconds;
/// How long the end of the process waits for what its streams still have to tell others.
constexpr double kLongestDrain = 10.0;

void set_once(Flag& flag, uint32_t word) noexcept {
  uint32_t none = 0;
  flag.compare_exchange_strong(none, word);
}

}  // namespace

/// Of all communicators of this process.
struct Flags::Process {
  static Process& instance() {
    static auto* made = new Process;  // outlives all statics
    return *made;
  }
  /// Process by process, the others' locks are not held below this one.
  template <class Work>
  void for_each(Work&& work) {
    const std::lock_guard lock(mutex);
    for (Flags* each : all) work(*each);
  }

  std::mutex mutex;
  std::set<Flags*> all;

 private:
  Process() {
    std::atexit([] {
      if (instance().process_.is_here()) drain_all();  // not at the end of a fork
    });
  }
  const HomeProcess process_;
};

void Flags::start_watching() {
  guard_->start(guard_);
  {
    Process& process = Process::instance();
    const std::lock_guard lock(process.mutex);
    process.all.insert(this);
  }
  watched_.heartbeat->add(*this);
}

void Flags::stop_watching() {
  watched_.heartbeat->remove(*this);
  {
    Process& process = Process::instance();
    const std::lock_guard lock(process.mutex);
    process.all.erase(this);
  }
  guard_->end();
}

/// At the regular end of the process others may still wait for its streams.
void Flags::drain_all() {
  const double end = steady_seconds() + kLongestDrain;
  bool is_through = false;
  while (!is_through && steady_seconds() < end) {
    is_through = true;
    Process::instance().for_each([&](const Flags& each) {
      const bool is_over = each.is_through() || !each.works();
      is_through = is_through && is_over;
    });
    if (!is_through) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Process::instance().for_each([](Flags& each) {
    if (!each.is_through()) {
      each.tell_others(&FlagPage::Owner::given_up, each.own_number(), "its process ends");
    }
  });
}

/// Of a GPU that is lost no streams come through anything.
bool Flags::works() const {
  try {
    backend::runtime(device_).check_works();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Flags::forget_all() {
  Process::instance().for_each([](Flags& each) { each.forget(); });
}

void Flags::tell_others(Flag FlagPage::Owner::*what, int blamed, std::string_view text) noexcept {
  const Lock lock(telling_);
  for (Peer& each : peers_) {
    if (!each.is_used) continue;
    FlagPage::Peer& mine = each.page->from(rank_);
    const size_t length = std::min(text.size(), sizeof mine.text - 1);
    if (mine.text[0] == '\0') std::memcpy(mine.text, text.data(), length);
    set_once(each.page->owner().*what, FlagPage::Word::of(blamed, rank_));
  }
}

/// Here and at all who receive what this rank's streams compute.
void Flags::taint(const Abandonment& reason) {
  if (guard_->is_forgotten()) return;
  guard_->spoil(reason);
  tell_others(&FlagPage::Owner::tainted, reason.rank, words_of(reason));
}

void Flags::abandon(const Abandonment& reason) {
  if (abandoned_at_) return;
  abandoned_at_ = steady_seconds();
  if (!guard_->is_forgotten()) {  // else whatever comes later is of communicators that are well
    Process::instance().for_each([&](Flags& each) { each.taint(reason); });
  }
  tell_others(&FlagPage::Owner::tainted, reason.rank, words_of(reason));
  tell_others(&FlagPage::Owner::given_up, reason.rank, words_of(reason));
}

std::string Flags::words_of(const Abandonment& reason) const {
  return cat("exchange: rank ", rank_, " of ", size_, ' ', reason.text);
}

void Flags::give_up_call(int blamed, std::string_view text) noexcept {
  if (!guard_) return;
  tell_others(&FlagPage::Owner::tainted, blamed, text);
  give_up(blamed, text);
  try {
    end();  // the stream comes through what it was given
  } catch (const std::exception&) {
    is_open_ = false;
  }
}

/// The next look sees to this rank's own waits.
void Flags::give_up(int blamed, std::string_view text) noexcept {
  if (!guard_) return;
  tell_others(&FlagPage::Owner::given_up, blamed, text);
  set_once(own().given_up, FlagPage::Word::of(blamed, rank_));
}

/// What this rank's GPU waits for at the moment; null while it has not come so far.
const Flags::Wait* Flags::awaited() const {
  for (const Call& call : calls_) {
    if (has_reached(own().done, call.number)) continue;
    if (!has_reached(own().begun, call.number)) return nullptr;
    for (const Wait& wait : call.waits) {
      if (!has_reached(*wait.flag, wait.number)) return &wait;
    }
    return nullptr;
  }
  return nullptr;
}

uint64_t Flags::progress() const {
  uint64_t all = own().begun.load() + own().done.load();
  for (int rank = 0; rank < size_; ++rank) {
    all += page_->from(rank).ready.load() + page_->from(rank).read.load();
  }
  return all;
}

/// Nothing while it is worth waiting.
std::optional<Abandonment> Flags::find_reason() {
  if (const uint32_t word = own().given_up.load(); word != 0) return told_by(own(), word, size_);
  const auto named = [this](const Wait& wait) { return cat("rank ", wait.rank); };
  const auto in_root = [this](int rank) { return watched_.in_root[static_cast<size_t>(rank)]; };
  const Wait* const wait = awaited();
  if (wait != nullptr) {
    const int place = watched_.places[static_cast<size_t>(wait->rank)];
    const Life life = watched_.heartbeat->life(place);
    if (life == Life::kLeft) {
      return Abandonment{in_root(wait->rank), true, cat("lost ", named(*wait), ": it has ended")};
    }
    if (Heartbeat::is_missing(life)) {
      return Abandonment{in_root(wait->rank), true,
                         cat("lost ", named(*wait), ": ", watched_.heartbeat->obituary(place))};
    }
  }
  const uint64_t now = progress();
  if (now != last_progress_) {
    last_progress_ = now;
    moved_at_ = steady_seconds();
  }
  if (steady_seconds() - moved_at_ <= timeout_) return std::nullopt;
  if (wait != nullptr) {
    return Abandonment{in_root(wait->rank), false,
                       cat("waited ", timeout_, " s on ", device_, " for ", named(*wait))};
  }
  return Abandonment{in_root(rank_), false, cat("waited ", timeout_, " s for its own GPU")};
}

/// Again and again: what a stream of another rank writes late may lie before it.
void Flags::release() {
  for (const Call& call : calls_) {
    for (const Wait& wait : call.waits) {
      if (!has_reached(*wait.flag, wait.number)) wait.flag->store(wait.number);
    }
  }
}

void Flags::look() noexcept {
  try {
    const Lock lock(mutex_);
    if (is_through()) return;
    if (!abandoned_at_) {
      if (const auto reason = find_reason()) abandon(*reason);
    } else if (steady_seconds() - *abandoned_at_ >= kBeforeRelease) {
      release();
    }
  } catch (const std::exception&) {  // no memory for a text: with the next look
  }
}

}  // namespace cuop::dist::fabric
