// What N ranks that are threads of one process share: their meetings, their messages and the
// failure, all under one mutex. Buffers are copied outside the mutex, straight from rank to rank.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/thread_mark.h"

namespace cuop::dist {

class ThreadWorld {
 public:
  /// `rank` of a world acts in `op` and waits at most `timeout` seconds.
  struct Caller {
    int rank;
    const char* op;
    double timeout;
    bool is_message = false;  ///< to one rank, not a collective call

    std::chrono::steady_clock::time_point deadline() const;
  };

  explicit ThreadWorld(int size);
  /// Of some ranks of another world, with which it fails and recovers once it has been added there.
  ThreadWorld(const std::shared_ptr<ThreadWorld>& parent, const std::vector<int>& members);

  int size() const { return static_cast<int>(ranks_.size()); }
  /// The number in the first world of a rank here; errors name ranks by it.
  int in_root(int rank) const { return members_[static_cast<size_t>(rank)]; }
  /// What a rank lays open to the others during a collective; read only between its two meetings.
  Collective& slot(int rank) { return ranks_[static_cast<size_t>(rank)].slot; }
  /// What a rank's stream holds when it comes to a collective, and after the copies of one; each is
  /// set before a meeting and read after it.
  ThreadMark& come(int rank) { return ranks_[static_cast<size_t>(rank)].come; }
  ThreadMark& copied(int rank) { return ranks_[static_cast<size_t>(rank)].copied; }

  /// The GPU that a rank's calls have used last, the host before they have used any.
  void set_gpu(int rank, Device gpu) { gpu_of(rank) = gpu.index; }
  Device gpu(int rank) const {
    const int index = gpu_of(rank);
    return index < 0 ? kCpu : Device{DeviceType::kCuda, index};
  }

  /// Returns when all ranks are here. When one is missing at the deadline, has left, or the world
  /// fails, nobody gets through: all raise.
  void meet(const Caller& caller);
  /// The meeting that ends a collective. It cannot fail and has no deadline: peers only copy before
  /// it, and to leave early would free a buffer that a peer still reads.
  void meet_after_copy(int rank);

  void send(const Caller& caller, const void* data, int64_t bytes, int dst, int tag);
  void recv(const Caller& caller, void* data, int64_t bytes, int src, int tag);
  void sendrecv(const Caller& caller, const void* send_data, int64_t send_bytes, int dst,
                void* recv_data, int64_t recv_bytes, int src, int tag);

  /// The rank refuses the arguments of its next collective call; those that make it and do not
  /// refuse it too fail with the text.
  void refuse_call(int rank, const std::string& text);
  /// The rank refuses to send or receive: those that wait for a message to or from it fail.
  void refuse_message(int rank, const std::string& text);
  /// `rank` tells that this one is to blame.
  void fail(int rank, int blamed, const std::string& reason);
  /// The same, blaming the rank that a part of this world has blamed before, else `failed`, counted
  /// in the first world, or `rank` where that is -1.
  void abort(int rank, int failed, const std::string& reason);
  std::string failure();
  /// Collective calls that a rank has begun since the last recovery.
  int64_t calls(int rank);
  bool is_failure_reported(int rank);
  void recover(const Caller& caller);
  /// The rank will not come again: whoever waits for it from now on raises at once.
  void leave(int rank);

  std::vector<RankHealth> health();
  /// What is left of this world, as a first world of its own, and the caller's rank there. See
  /// Communicator.
  std::pair<std::shared_ptr<ThreadWorld>, int> shrink(const Caller& caller);

  /// Fails and recovers together with this world from now on.
  void add_child(const std::shared_ptr<ThreadWorld>& child);

 private:
  enum class MessageState { kWaiting, kCopying, kDone };
  struct Message {
    int src;
    int tag;
    const void* data;
    int64_t bytes;
    std::vector<char> owned;  // a short message's own copy; a long one is read from the sender
    MessageState state = MessageState::kWaiting;
  };
  using MessagePtr = std::shared_ptr<Message>;
  using Lock = std::unique_lock<std::mutex>;

  struct Rank {
    Collective slot;
    ThreadMark come, copied;
    std::condition_variable wake;
    std::list<MessagePtr> inbox;
    bool has_arrived = false;
    const char* op = "";  // in which it has arrived
    bool is_recovering = false;
    bool has_left = false;
    const char* met_in = nullptr;  // recover or shrink, of this world or one around it
    bool is_shrinking = false;
    bool is_left_out = false;            // others went on without it
    bool has_given_up_recovery = false;  // which nobody has completed since
    int apart = -1;                      // the rank in another meeting for which this one's ends
    const char* apart_in = nullptr;
    const char* parted_from = nullptr;  // the meeting that has ended for that, until the next one
    uint64_t parting = 0;               // the last one in which this rank was
    bool knows_failure = false;
    int calls = 0;  // collective ones, also refused
    std::set<int> refused_calls;
    std::string refused_message;
    int refused_message_at = -1;  // the number of calls then
  };
  struct Refusal {
    int rank;
    int call;
    std::string text;
  };
  /// A wait of one rank, for ranks of the first world.
  struct Wait {
    const char* op = "";
    int number = 0;  // of the call
    std::chrono::steady_clock::time_point since = {};
    std::vector<int> awaited = {};
  };
  /// What worlds that were split from one another share. Its mutex is locked last.
  struct Family {
    std::mutex mutex;
    /// For each rank of the first world: its wait in each world in which it has one.
    std::vector<std::map<const ThreadWorld*, Wait>> waits;
    std::vector<std::atomic<int>> gpus;  // by their index; -1 for none yet
    int part_failed_rank = -1;           // whom the first failure of a part blames
  };
  class Waiting;
  class LockedParts;

  std::atomic<int>& gpu_of(int rank) const {
    return family_->gpus[static_cast<size_t>(in_root(rank))];
  }
  Rank& at_rank(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  void wake_all();
  void check_same_call(const Caller& caller);
  bool arrive(Lock& lock, int rank);
  void spin_until_generation_changes(uint64_t generation) const;
  std::string named(int rank) const;
  /// Waits until `ready()`; throws after failing the world when it fails, the deadline passes or
  /// `missing()` names a rank that has left.
  template <class Ready, class Missing>
  void wait(Lock& lock, const Caller& caller, Ready&& ready, Missing&& missing);
  void check_awaited(Lock& lock, const Caller& caller, const std::vector<int>& awaited);
  template <class IsOver, class Missing>
  void expire(Lock& lock, const Caller& caller, IsOver&& is_over, Missing&& missing);
  int find_silent(int asking, const std::vector<int>& late);
  ThreadWorld& first() { return root_ ? *root_ : *this; }
  /// What `work` gives, called with the whole family locked instead of this world alone.
  std::optional<CommunicationError> with_family(
      Lock& lock, const std::function<std::optional<CommunicationError>()>& work);
  /// With this world and its parts locked: it fails, blaming a rank of it. The caller's error.
  CommunicationError fail_world(const Caller& caller, int blamed, const std::string& what);
  /// With the whole family locked: rank `blamed` of the first world is gone for all of it.
  CommunicationError fail_family(const Caller& caller, int blamed, const std::string& what);
  void note_part_failed(int blamed);
  void fail_here(int blamed, const std::string& text);
  /// With this world and its parts locked.
  void mark_failed(int rank, const std::string& reason);
  void settle_refusals();
  void leave_locked(int rank_in_root);
  /// The rank, counted in the first world, comes to no other call of this world or its parts while
  /// it waits in `op` for all; null when it does again. Wakes whoever may wait for it.
  void note_meeting(int rank_in_root, const char* op);
  /// Where some ranks recover and others shrink, ends the meetings of all of them.
  void part_meetings();
  void give_up_recovery(int rank);
  bool is_apart(int rank, bool recovers);
  [[noreturn]] void raise_apart(const Caller& caller);
  std::vector<int> not_arrived() const;
  CommunicationError error_in(const Caller& caller, const std::string& text, int blamed);
  /// The failed rank where it has left, else the first that has; -1 where none has.
  int first_that_left() const;
  void conclude_shrink();
  [[noreturn]] void throw_failure(const Caller& caller);
  [[noreturn]] void fail_and_throw(const Caller& caller, int blamed, const std::string& what);
  void refuse_locked(const Caller& caller);
  MessagePtr post(const Caller& caller, const void* data, int64_t bytes, int dst, int tag);
  void finish_send(Lock& lock, const Caller& caller, const MessagePtr& message, int dst);
  void withdraw(Lock& lock, int rank, const MessagePtr& message, int dst) noexcept;
  void reset_locked();
  /// `work` on each world that was split from this one, locked.
  template <class Work>
  void for_each_child(Work&& work) {
    for (const auto& weak : children_) {
      const auto child = weak.lock();
      if (!child) continue;
      const Lock lock(child->mutex_);
      work(*child);
    }
  }

  std::mutex mutex_;
  std::shared_ptr<ThreadWorld> parent_;  // null for the first world; failures come through it
  std::shared_ptr<ThreadWorld> root_;    // null for the first world
  std::vector<int> members_;             // the ranks' places in the first world
  std::shared_ptr<Family> family_;
  std::vector<Rank> ranks_;
  std::vector<Refusal> refusals_;
  int arrived_ = 0;
  std::atomic<uint64_t> generation_ = 0;  // meetings held
  int recovering_ = 0;
  uint64_t recoveries_ = 0;
  std::string failure_;
  int failed_rank_ = -1;
  uint64_t partings_ = 0;  // of ranks that recovered from others that shrank
  uint64_t shrinks_ = 0;
  std::shared_ptr<ThreadWorld> shrunk_;               // by the last one
  std::vector<int> survivors_;                        // the ranks here of its ranks
  std::vector<std::weak_ptr<ThreadWorld>> children_;  // locked after this world, never before
};

}  // namespace cuop::dist
