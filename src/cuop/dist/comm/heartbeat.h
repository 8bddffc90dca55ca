// How a process knows of the others on its host without asking them: a thread of its own counts up
// a number in its page (heartbeat_page.h), reads those of the others and hears from the system when
// one of their processes ends. It needs neither MPI nor that anybody is inside of a call of cuOP.
//
// A rank whose number stands still longer than the limit is stopped. The time counts only while
// this process runs: when a whole job is stopped, or its machine sleeps, nobody takes the others
// for stopped afterwards. Ranks of other hosts are not watched: they are known by their connection
// alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuop/core/descriptor.h"
#include "cuop/dist/comm/heartbeat_page.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist {

class Heartbeat {
 public:
  enum class Life : uint8_t { kUnwatched, kBeating, kStopped, kLeft, kDead };

  static constexpr double kBeatSeconds = 0.1;
  static constexpr double kLeastLimit = 0.5;

  /// CUOP_HEARTBEAT_TIMEOUT in seconds, infinity for none. ExecutionError when it is too short for
  /// heartbeats that come every 0.1 s.
  static double limit_of_environment();

  /// Makes this process's page, or warns that there is none; nobody is watched yet, and a rank is
  /// stopped after `limit` seconds.
  explicit Heartbeat(double limit);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// What the other ranks need to watch this one.
  const PagePlace& place() const { return own_.place(); }
  /// Starts the thread. places[r] is what rank r gave; those of other hosts are not watched.
  void watch(int rank, std::span<const PagePlace> places);

  double limit() const { return limit_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  /// From here on all but own_page() concerns ranks that are watched. All are local reads.
  Life life(int rank) const;
  /// Seconds since its last heartbeat, as far as this process was running.
  double silence(int rank) const { return peer(rank).silence; }
  int64_t process(int rank) const { return peer(rank).page.place().process; }
  /// Whether any rank is dead or stopped.
  bool has_missing() const { return has_missing_; }
  /// The calls that a rank is in; none of a rank that is not watched.
  std::vector<CallNote> calls(int rank) const;
  int64_t last_number(int rank) const;
  /// How long a call of the rank has been without progress, while the rank was running.
  double seconds_in(int rank, const CallNote& call) const;
  /// "its process 4711 has died, in all_reduce (call 17)", of a rank that is dead or stopped.
  std::string obituary(int rank) const;

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
  };

  const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }
  void open(Peer& peer, const PagePlace& place);
  void run();
  void look(Peer& peer, double seconds);

  double limit_;
  int64_t process_;  // this one
  HeartbeatPage own_;
  std::vector<Peer> peers_;
  std::atomic<bool> has_missing_ = false;
  std::atomic<bool> is_ending_ = false;
  Alarm alarm_;
  std::thread thread_;
};

/// While it lives this process is known to be in a call. Null heartbeats note nothing.
class NotedCall {
 public:
  NotedCall(Heartbeat* heartbeat, std::string_view operation, uint64_t context, int64_t epoch,
            int64_t number, bool is_collective)
      : page_(heartbeat == nullptr ? nullptr : &heartbeat->own_page()),
        place_(page_ == nullptr || !page_->is_open()
                   ? -1
                   : page_->begin_call(operation, context, epoch, number, is_collective)) {}
  ~NotedCall() {
    if (place_ >= 0) page_->end_call(place_);
  }
  NotedCall(const NotedCall&) = delete;
  NotedCall& operator=(const NotedCall&) = delete;

  /// It has made progress and waits for this rank among those of the heartbeat, -1 for none.
  void wait_for(int rank) {
    if (place_ >= 0) page_->set_awaited(place_, rank);
  }

 private:
  HeartbeatPage* page_;
  int place_;
};

}  // namespace cuop::dist
