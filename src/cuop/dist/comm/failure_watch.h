// The failure rule of communicator.h over control messages.
//
// All ranks of a communicator are in the same epoch, a number that every message carries. A rank
// that fails sends "abort" with its epoch to all others, who notice it in their waits and pass it
// on before they leave them: whoever misses one of them then has been told why. `recover` sends
// "meet" to all, waits for everybody's and raises the epoch, so that whatever was under way before
// matches nothing any more. Example with ranks 0 1 2 in epoch 4: rank 1 aborts; 0 sees it in its
// wait and recovers (meet 5); 2 is computing; 1 recovers (meet 5); 2 sees the abort at its next
// operation, raises, recovers (meet 5): all three have three meets of 5 and go on in epoch 5. The
// abort of epoch 4 is old news should it come later.
//
// Watches of communicators that were split from each other are a family. Before a rank gives up at
// a deadline it pings all processes of the family: each answers what it waits in and for whom,
// whatever communicator that is in. The answers lead from the awaited rank to the one that answers
// nothing. Rank 0 waits for 1, 1 answers that it waits for 3, 3 is silent: 3 is blamed, and as it
// is lost for all, the communicator that all were split from fails. When everybody answers (0 waits
// for 1 and 1 for 0), the ranks made different calls: the communicator itself fails.
//
// A rank that ends after a recovery has told all others before that it has come; so what a rank has
// sent is waited for before its end is believed to be the reason why it does not come. One that
// gives up a `recover` or a `shrink` tells so. When some recover while others shrink, the first
// that sees it tells all that are in either, and all raise; but for a rank that was in vain in
// `recover` and shrinks: it waits for the others, which raise and may follow it.
//
// A rank that refuses the arguments of a collective call tells the others the call's number. Those
// that have made or come to make that call, and not refused it too, fail with the refusal's text.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/health.h"
#include "cuop/dist/comm/heartbeat.h"
#include "cuop/dist/comm/survivors.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

/// What the note of a call says of it.
inline CallShape shape_of(const Collective& step) {
  const Collective& call = step.whole();
  return {call.root, static_cast<uint8_t>(call.dtype), static_cast<uint8_t>(call.op), call.count};
}

/// Watches of one family may be used by several threads, each watch by one. A rank that is blamed
/// is given by its number here, and told by its number in the first communicator of the family.
class FailureWatch {
 public:
  /// With a parent, its failures are failures here and its recoveries recoveries; `members` are the
  /// ranks there of the ranks here.
  FailureWatch(std::shared_ptr<Transport> transport, std::shared_ptr<FailureWatch> parent = nullptr,
               std::vector<int> members = {});

  /// Ranks of the root are watched by it from now on; `places` are their numbers there. Before the
  /// first failure.
  void set_heartbeat(std::shared_ptr<Heartbeat> heartbeat, std::vector<int> places);
  /// Null where nobody is watched.
  const std::shared_ptr<Heartbeat>& heartbeat() { return root().heartbeat_; }
  /// The number there of a rank here.
  int in_heartbeat(int rank);

  /// The number that separates messages before and after a recovery.
  int64_t epoch() const;
  /// Whether this communicator was split from no other.
  bool is_root() const { return !parent_; }
  /// The number in the communicator that all of the family were split from of a rank here.
  int in_root(int rank) const;

  /// While it lives this rank waits in `op` for `peer`, and says so when it is asked.
  class Waiting : NonCopyable {
   public:
    Waiting(FailureWatch& watch, std::string_view op, int peer);
    ~Waiting();

   private:
    FailureWatch& root_;
    std::list<Control>::iterator place_;
  };

  /// Takes in the control messages that have arrived.
  void poll();
  /// CommunicationError when failed; `op` begins its text. Polls.
  void check(std::string_view op);
  /// Fails this communicator on all ranks and raises "op: rank 1 of 4 <what>".
  [[noreturn]] void fail(std::string_view op, int blamed, const std::string& what);
  /// The same where this rank raises an error of its own.
  void tell(std::string_view op, const std::string& what);
  /// Rank `blamed` of the root has let streams of this rank wait in vain, and is gone or not:
  /// raises what the others have told meanwhile, else "op: rank 0 of 4 <what>".
  [[noreturn]] void give_up(std::string_view op, int blamed, const std::string& what, bool is_gone);
  /// Rank `peer` is gone: fails the whole family.
  [[noreturn]] void lose(std::string_view op, int peer, const std::string& what);
  /// A wait for `peer` has lasted `seconds`: blames the rank that keeps it.
  [[noreturn]] void expire(std::string_view op, int peer, double seconds);

  /// In a wait for `peer`: raises when that rank, or in a collective call any rank here, has died
  /// or does not run, or when `peer` is in another collective call than `call`; null for a message.
  void check_heartbeats(std::string_view op, int peer, const Collective* call);
  /// What is seen of the ranks here.
  std::vector<RankHealth> health();
  /// The ranks here that go on together (survivors.h); a rank that is not here is waited for
  /// `timeout` seconds. CommunicationError when this rank is not one of them.
  std::vector<int> agree_on_survivors(double timeout);
  /// How many such agreements there were, on all that took part in them.
  int64_t shrinks() const { return shrinks_; }

  /// Collective calls that this rank has begun since the last recovery.
  int64_t calls();
  /// Every rank counts its collective calls; this is one. Raises when another rank refused it.
  void begin_call(std::string_view op);
  /// The same for a call that this rank refuses.
  void refuse_call(const std::string& text) noexcept;
  /// This rank refuses to send or receive a message.
  void refuse_message(const std::string& text) noexcept;
  /// In a wait for a message to or from `peer`: raises when that rank has refused one.
  void check_message(std::string_view op, int peer);

  /// In a wait for `peer`: raises when that rank waits in a `recover` or `shrink` to which this one
  /// has not come, and what it has sent before would be here. `noticed` is when that was so first.
  void check_meeting(std::string_view op, int peer,
                     std::optional<std::chrono::steady_clock::time_point>& noticed);

  /// `failed`: the rank in the root that is why, -1 for this one.
  void abort(const std::string& reason, int failed = -1) noexcept;
  std::string failure();
  /// The rank in the root that it blames; -1 where there is none.
  int blamed();
  bool is_reported();
  void recover(double timeout);

 private:
  using Lock = std::lock_guard<std::recursive_mutex>;

  struct Failure {
    std::string text;
    int rank = -1;       // in the root
    int64_t epoch = -1;  // it holds while this is the present epoch
  };
  /// What each rank of the family says it waits for.
  using Answers = std::vector<std::vector<Control>>;
  struct Refusal {
    int rank;
    int32_t call;
    std::string text;
  };
  enum class Meeting : uint8_t { kRecover, kShrink };
  /// A rank here and the meeting that it has come to, which is not this rank's.
  struct Apart {
    int rank;
    std::string_view meeting;
  };
  class Coming;

  FailureWatch& root() { return parent_ ? parent_->root() : *this; }
  std::string named(int rank) const;
  std::string where(std::string_view op) const;

  bool is_failed() const { return failure_.epoch == epoch(); }
  CommunicationError error_in(std::string_view op, const std::string& text, int blamed);
  void check_missing(std::string_view op, int rank);
  std::string_view meeting_of(int peer) const;
  void note_coming(int src);
  void take_back(const Control& message);
  void check_late(std::string_view op, const std::vector<int>& late,
                  std::optional<std::chrono::steady_clock::time_point>& noticed);
  std::optional<Apart> find_apart(const std::vector<int>& late) const;
  bool has_parted_from(int rank, Meeting meeting) const;
  [[noreturn]] void raise_apart(std::string_view op);
  void check_same_call(const Collective& call, int peer);
  SeenRank seen(int place) const;
  std::string why_gone(int rank);
  bool is_missing(int rank);
  template <class Done>
  void wait_until(double timeout, Done&& done);

  void set_failure(std::string text, int blamed);
  void fail_all(const std::string& text, int blamed) noexcept;
  [[noreturn]] void fail_family(std::string_view op, const std::string& text, int blamed);
  void tell_others(ControlKind kind, int64_t epoch, int blamed, const std::string& text) noexcept;
  void pass_on(const Control& abort) noexcept;
  void take(const Control& message);
  void answer_ping(const Control& ping);
  void enter_epoch();
  std::string refusal_by(int rank) const;
  void settle_refusals();
  Answers enquire(std::string_view op);

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<FailureWatch> parent_;
  std::vector<int> members_;
  std::shared_ptr<std::recursive_mutex> mutex_;  // the family's
  int64_t recoveries_ = 0;
  Failure failure_;
  Failure part_failure_;  // of a communicator split from this one; an abort that follows names it
  bool is_reported_ = false;
  std::vector<Control> early_;  // from ranks that have recovered before this one
  std::vector<int64_t> meets_;  // the latest recovery that each rank came to

  int64_t calls_epoch_ = 0;  // of the four below
  int32_t calls_ = 0;
  std::set<int32_t> own_refusals_;
  std::vector<Refusal> refusals_;
  std::map<int, Refusal> refused_messages_;  // the last one of each rank

  Survivors survivors_;
  int64_t shrinks_ = 0;

  std::optional<Meeting> meeting_;  // that this rank is in
  std::optional<Apart> apart_;      // for which this rank's meeting, or one of those in it, ends
  int64_t given_up_ = 0;            // the latest recovery that this rank came to in vain
  /// Since when it is known of a rank that it gives up the meeting that it is in.
  std::vector<std::optional<std::chrono::steady_clock::time_point>> doomed_;
  /// The meeting that a rank has given up because some recover and others shrink, with its number,
  /// until it comes to another one.
  std::vector<std::optional<std::pair<Meeting, int64_t>>> parted_from_;

  // Of the root alone.
  std::shared_ptr<Heartbeat> heartbeat_;
  std::vector<int> places_;
  std::list<Control> waits_;  // as answers to a ping
  int64_t last_enquiry_ = 0;
  std::map<int64_t, Answers> enquiries_;
};

}  // namespace cuop::dist
