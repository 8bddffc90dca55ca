// How the streams of ranks that read each other's GPU memory wait for each other, so that no
// process has to wait for its GPU:
//
//   sender    "ready 7" -> receiver's page         waits for "read 7"; then what comes later
//   receiver  waits for "ready 7", copies, "read 7" -> sender's page
//
// All of it is work of streams, numbered for each pair of ranks (fabric_flag_page.h). Ranks agree
// on it by a trial, for pairs of processes of one host of whom each can map the other's page.
//
// A rank that dies, stops or fails in the middle of a call would let others wait for ever. The
// thread of the heartbeat looks after that (fabric_flags_watch.cpp): it tells everybody who may
// receive what is computed from then on that it means nothing, and a moment later writes what the
// streams wait for. So no wait of a host for its GPU takes that for a result (fabric_guard.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"
#include "cuop/dist/comm/fabric_flag_page.h"
#include "cuop/dist/comm/fabric_guard.h"
#include "cuop/dist/comm/heartbeat.h"
#include "cuop/dist/comm/p2p_collectives.h"

namespace cuop::dist::fabric {

/// Who the ranks of a communicator are to those who watch them outside of its calls.
struct Watched {
  std::shared_ptr<Heartbeat> heartbeat;  ///< null where nobody is watched
  std::vector<int> places;               ///< of the ranks in it
  std::vector<int> in_root;              ///< by which errors name them
};

class Flags final : public Heartbeat::Observer, NonCopyable {
 public:
  /// Collective. `is_wanted[r]`: one of the two reads the other's memory; "" or why this rank takes
  /// no part.
  Flags(Exchange& x, Device device, Watched watched, const std::vector<bool>& is_wanted,
        std::string absence);
  /// No work that uses them is in flight.
  ~Flags() override;

  /// Whether what goes between this rank and the other is ordered so, the same on both.
  bool reach(int rank) const { return peers_[static_cast<size_t>(rank)].is_used; }
  bool is_used() const;
  /// Why not, as far as this rank knows; of one pair or of all.
  const std::string& finding() const { return finding_; }

  // A call, as work of one stream. CommunicationError of one that comes behind a failure.
  /// Behind all earlier calls, whatever their streams. Harmless when the call has begun.
  void begin(Stream stream, double timeout);
  /// What the rank is to read is there; its number.
  uint32_t write_ready(int rank);
  /// The number that `await_ready` waits for.
  uint32_t next_from(int rank) const { return peers_[static_cast<size_t>(rank)].received + 1; }
  void await_ready(int rank);
  /// The same for the host: whether it is there.
  bool is_ready(int rank) const;
  void write_read(int rank);
  void await_read(int rank);
  void end();

  /// Whether the streams have come through all calls.
  bool is_through() const;
  /// This rank has failed in the middle of a call, or its communicator outside of one, and nobody
  /// should wait for it; `blamed` is a rank in the root. Memory that was sent still has to be what
  /// it was.
  void give_up_call(int blamed, std::string_view text) noexcept;
  void give_up(int blamed, std::string_view text) noexcept;
  int own_number() const { return watched_.in_root[static_cast<size_t>(rank_)]; }
  /// Why calls do not go on.
  std::optional<Abandonment> reason() const { return guard_->reason(); }
  void note_raised() { guard_->note_raised(); }
  /// All ranks know of the failure.
  void forget() { guard_->forget(); }
  /// The same for all communicators of the process.
  static void forget_all();

  void look() noexcept override;

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct Peer {
    std::unique_ptr<FlagPage> page;
    bool is_used = false;
    uint32_t sent = 0, received = 0;
  };
  /// For a flag in this rank's page.
  struct Wait {
    int rank;
    FlagPage::Flag* flag;
    uint32_t number;
  };
  struct Call {
    uint32_t number;
    std::vector<Wait> waits = {};
  };
  struct Process;

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  const FlagPage& theirs(int rank) { return *peer(rank).page; }
  FlagPage::Owner& own() const { return page_->owner(); }
  void connect(Exchange& x, const std::vector<bool>& is_wanted);
  void make_trial(Exchange& x, const std::vector<bool>& is_mutual);
  void await(const Wait& wait);

  // fabric_flags_watch.cpp
  void start_watching();
  void stop_watching();
  static void drain_all();
  bool works() const;
  std::optional<Abandonment> find_reason();
  const Wait* awaited() const;
  void abandon(const Abandonment& reason);
  void taint(const Abandonment& reason);
  void tell_others(FlagPage::Flag FlagPage::Owner::*what, int blamed,
                   std::string_view text) noexcept;
  std::string words_of(const Abandonment& reason) const;
  void release();
  uint64_t progress() const;

  const Device device_;
  const Watched watched_;
  const int rank_, size_;
  std::string finding_;
  std::unique_ptr<FlagPage> page_;
  std::vector<Peer> peers_;
  std::shared_ptr<Guard> guard_;
  // Of the thread that makes the calls.
  Stream stream_;  ///< of the last call
  bool is_open_ = false;

  std::mutex telling_;
  std::atomic<uint32_t> issued_;  ///< the last call
  std::mutex mutex_;              ///< of what follows
  std::deque<Call> calls_;        ///< that may not be through
  double timeout_ = 0.0;
  uint64_t last_progress_ = 0;
  double moved_at_ = 0.0;
  std::optional<double> abandoned_at_;
};

}  // namespace cuop::dist::fabric
