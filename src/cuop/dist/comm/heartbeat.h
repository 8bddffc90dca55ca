// How a process knows of the others without asking them: a thread of its own counts up a number in
// its page (heartbeat_page.h), reads those of the others on its host and hears from the system when
// one of their processes ends. What the pages of other hosts say comes in reports
// (heartbeat_hosts.h) and is kept in mirrors of them. It needs neither MPI nor that anybody is
// inside of a call of cuOP.
//
// A rank whose number stands still longer than the limit is stopped; four times as long where it
// only waits for a processor on a machine that is too busy. The time counts only while
// this process runs: when a whole job is stopped, or its machine sleeps, nobody takes the others
// for stopped afterwards. A host of which nothing has come for so long is silent, and all its ranks
// are. One from which no report has ever come, as through a firewall, is not watched: its ranks are
// known by their connection alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuop/core/descriptor.h"
#include "cuop/core/home_process.h"
#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/heartbeat_hosts.h"
#include "cuop/dist/comm/heartbeat_page.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist {

class Heartbeat : NonCopyable {
 public:
  enum class Life : uint8_t { kUnwatched, kBeating, kStopped, kSilent, kLeft, kDead };

  static constexpr double kBeatSeconds = 0.1;
  static constexpr double kLeastLimit = 0.5;

  /// CUOP_HEARTBEAT_TIMEOUT in seconds, infinity for none. ExecutionError when it is too short for
  /// heartbeats that come every 0.1 s.
  static double limit_of_environment();

  /// Makes this process's page, or warns that there is none; nobody is watched yet, and a rank is
  /// stopped after `limit` seconds.
  explicit Heartbeat(double limit);
  ~Heartbeat();

  /// What the other ranks need to watch this one.
  const PagePlace& place() const { return own_.place(); }
  /// Starts the thread. places[r] is what rank r gave; those of other hosts are watched by reports
  /// alone.
  void watch(int rank, std::span<const PagePlace> places,
             std::unique_ptr<HostReports> reports = nullptr);

  double limit() const { return limit_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  /// From here on all but own_page() concerns ranks that are watched. All are local reads.
  Life life(int rank) const;
  /// Seconds since its last heartbeat, as far as this process was running.
  double silence(int rank) const { return peer(rank).silence; }
  int64_t process(int rank) const { return peer(rank).page.place().process; }
  /// Whether the rank is on another host, by the reports of which it is watched.
  bool is_elsewhere(int rank) const {
    return peer(rank).page.is_open() && !is_local(static_cast<size_t>(rank));
  }
  /// Whether a rank is dead, stopped or on a silent host.
  static bool is_missing(Life life) {
    return life == Life::kDead || life == Life::kStopped || life == Life::kSilent;
  }
  /// Whether any rank is.
  bool has_missing() const { return has_missing_; }
  /// The calls that a rank is in; none of a rank that is not watched.
  std::vector<CallNote> calls(int rank) const;
  int64_t last_number(int rank) const;
  /// How long a call of the rank has been without progress, while the rank was running.
  double seconds_in(int rank, const CallNote& call) const;
  /// "its process 4711 has died, in all_reduce (call 17)", of a rank that is missing.
  std::string obituary(int rank) const;

  /// A message of this rank has come otherwise: it runs.
  void note_life(int rank) { peers_[static_cast<size_t>(rank)].was_heard = true; }
  /// This process is about to end as it should.
  void leave();

  /// Is asked to look by the heartbeat's thread, with each beat and each end of a process. It waits
  /// for nothing.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void look() noexcept = 0;
  };
  void add(Observer& observer);
  /// It is not asked any more, and is not looking.
  void remove(Observer& observer);

  HeartbeatPage& own_page() { return own_; }
  void show_life() {
    if (own_.is_open()) own_.show_life();
  }

 private:
  struct Peer {
    HeartbeatPage page;
    Descriptor process;              // can be read from when it has ended
    std::atomic<int64_t> signs = 0;  // of its life, that have been seen
    std::atomic<Life> life = Life::kUnwatched;
    std::atomic<double> silence = 0.0;
    std::atomic<double> host_silence =
        0.0;  // since the last report of its host, where that is another
    std::atomic<bool> was_heard = false;
  };

  const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }
  void open(Peer& peer, const PagePlace& place);
  void run();
  void await_events(double end);
  void become(Peer& peer, Life life);
  void look(Peer& peer, double seconds);
  bool is_local(size_t rank) const;
  bool reports_for_host() const;
  void report();
  void hear(const RankReport& report);

  double limit_;
  HomeProcess process_;
  int rank_ = 0;
  std::unique_ptr<HostReports> reports_;  // null where all are on one host
  HeartbeatPage own_;
  std::vector<Peer> peers_;
  std::atomic<bool> has_missing_ = false;
  std::mutex observers_mutex_;
  std::set<Observer*> observers_;
  std::atomic<bool> is_ending_ = false;
  Alarm alarm_;
  std::thread thread_;
};

/// While it lives this process is known to be in a call. Null heartbeats note nothing.
class NotedCall : NonCopyable {
 public:
  NotedCall(Heartbeat* heartbeat, std::string_view operation, uint64_t context, int64_t epoch,
            int64_t number, bool is_collective, const CallShape& shape = {})
      : page_(heartbeat == nullptr ? nullptr : &heartbeat->own_page()),
        place_(page_ == nullptr || !page_->is_open()
                   ? -1
                   : page_->begin_call(operation, context, epoch, number, is_collective, shape)) {}
  ~NotedCall() {
    if (place_ >= 0) page_->end_call(place_);
  }

  /// It has made progress and waits for this rank among those of the heartbeat, -1 for none.
  void wait_for(int rank) {
    if (place_ >= 0) page_->set_awaited(place_, rank);
  }

 private:
  HeartbeatPage* page_;
  int place_;
};

}  // namespace cuop::dist
