#include "cuop/dist/comm/thread_world.h"

#include <algorithm>
#include <numeric>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/spin.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// Messages up to this length are copied into the inbox, so that their sender goes on at once.
constexpr int64_t kCopiedBytes = 16 * 1024;
/// How long a rank whose deadline has passed looks who waits for whom.
constexpr auto kEnquiry = std::chrono::milliseconds(100);

}  // namespace

/// While it lives the rank is known to wait, and for whom.
class ThreadWorld::Waiting : NonCopyable {
 public:
  /// Under the world's mutex.
  Waiting(ThreadWorld& world, const Caller& caller)
      : world_(world),
        rank_(world.in_root(caller.rank)),
        wait_{caller.op, world.at_rank(caller.rank).calls, Clock::now()} {}
  ~Waiting() {
    const Lock lock(world_.family_->mutex);
    waits().erase(&world_);
  }

  void set(const std::vector<int>& awaited) {
    wait_.awaited.clear();
    for (int rank : awaited) wait_.awaited.push_back(world_.in_root(rank));
    const Lock lock(world_.family_->mutex);
    waits()[&world_] = wait_;
  }

 private:
  std::map<const ThreadWorld*, Wait>& waits() {
    return world_.family_->waits[static_cast<size_t>(rank_)];
  }
  ThreadWorld& world_;
  int rank_;
  Wait wait_;
};

ThreadWorld::ThreadWorld(int size)
    : members_(static_cast<size_t>(size)),
      family_(std::make_shared<Family>()),
      ranks_(static_cast<size_t>(size)) {
  std::iota(members_.begin(), members_.end(), 0);
  family_->waits.resize(members_.size());
  family_->gpus = std::vector<std::atomic<int>>(members_.size());
  for (auto& gpu : family_->gpus) gpu = -1;
}

ThreadWorld::ThreadWorld(const std::shared_ptr<ThreadWorld>& parent,
                         const std::vector<int>& members)
    : parent_(parent),
      root_(parent->root_ ? parent->root_ : parent),
      family_(parent->family_),
      ranks_(members.size()) {
  for (int member : members) members_.push_back(parent->in_root(member));
}

/// "rank 1"; of a part "rank 1 (rank 3 of all)".
std::string ThreadWorld::named(int rank) const {
  return root_ ? cat("rank ", rank, " (rank ", in_root(rank), " of all)") : cat("rank ", rank);
}

void ThreadWorld::wake_all() {
  for (Rank& rank : ranks_) rank.wake.notify_all();
}

std::chrono::steady_clock::time_point ThreadWorld::Caller::deadline() const {
  // Clipped to a year: an infinite time-out must not overflow the clock.
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(timeout, 0.0, 3.15e7)));
}

std::vector<int> ThreadWorld::not_arrived() const {
  std::vector<int> missing;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].has_arrived) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

template <class Ready, class Missing>
void ThreadWorld::wait(Lock& lock, const Caller& caller, Ready&& ready, Missing&& missing) {
  const Clock::time_point deadline = caller.deadline();
  Rank& self = at_rank(caller.rank);
  Waiting waiting(*this, caller);
  while (!ready()) {
    if (!failure_.empty()) throw_failure(caller);
    const std::vector<int> awaited = missing();
    check_awaited(lock, caller, awaited);
    waiting.set(awaited);
    if (self.wake.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
    // Ranks that are on their way from one wait to the next one show themselves meanwhile.
    const auto is_over = [&] { return ready() || !failure_.empty(); };
    if (!self.wake.wait_for(lock, kEnquiry, is_over)) expire(lock, caller, is_over, missing);
  }
}

void ThreadWorld::check_awaited(Lock& lock, const Caller& caller, const std::vector<int>& awaited) {
  for (int rank : awaited) {
    const Rank& other = at_rank(rank);
    // A rank that has come to the next collective call since then has gone on. One that has left
    // since then left because of that.
    const bool is_refused = caller.is_message
                                ? other.refused_message_at == at_rank(caller.rank).calls
                                : other.met_in && other.refused_message_at == other.calls;
    if (is_refused) {
      fail_and_throw(
          caller, rank,
          cat("waits for ", named(rank), ", which refused a message: ", other.refused_message));
    }
    if (other.met_in != nullptr) {
      fail_and_throw(caller, rank,
                     cat("waits for ", named(rank), ", which has called ", other.met_in));
    }
    if (other.has_left) {
      throw *with_family(lock, [&]() -> std::optional<CommunicationError> {
        return fail_family(caller, in_root(rank),
                           cat("waits for ", named(rank), ", which has returned already"));
      });
    }
  }
}

int ThreadWorld::find_silent(int asking, const std::vector<int>& late) {
  std::vector<int> awaited;
  for (int rank : late) awaited.push_back(in_root(rank));
  const Lock lock(family_->mutex);
  std::vector<Waits> waits;
  for (const auto& by_world : family_->waits) {
    Waits& of_rank = waits.emplace_back();
    for (const auto& [world, wait] : by_world) {
      of_rank.insert(of_rank.end(), wait.awaited.begin(), wait.awaited.end());
    }
  }
  return dist::find_silent(waits, in_root(asking), std::move(awaited), members_);
}

/// With the whole family locked: a rank leaves its wait when a world fails, and who looks for the
/// cause must not find that it has left and not why.
template <class IsOver, class Missing>
void ThreadWorld::expire(Lock& lock, const Caller& caller, IsOver&& is_over, Missing&& missing) {
  const auto give_up = [&]() -> std::optional<CommunicationError> {
    if (is_over()) return {};
    const std::vector<int> late = missing();
    const std::string what = cat("waited ", caller.timeout, " s for ",
                                 late.size() == 1 ? named(late[0]) : ranks_text(late));
    const int silent = find_silent(caller.rank, late);
    if (silent < 0) return fail_world(caller, late.size() == 1 ? late[0] : -1, what);
    return fail_family(caller, silent,
                       cat(what, "; not answering: rank ", silent, root_ ? " of all" : ""));
  };
  if (const auto error = with_family(lock, give_up)) throw *error;
}

/// Ranks that have arrived have begun as many collective calls as this one.
void ThreadWorld::check_same_call(const Caller& caller) {
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& other = at_rank(rank);
    if (!other.has_arrived || std::string_view(other.op) == caller.op) continue;
    fail_and_throw(caller, rank,
                   cat("met ", named(rank), " in ", other.op, ": both are call ", other.calls));
  }
}

bool ThreadWorld::arrive(Lock&, int rank) {
  at_rank(rank).has_arrived = true;
  if (++arrived_ < size()) return false;
  arrived_ = 0;
  for (Rank& each : ranks_) each.has_arrived = false;
  generation_.fetch_add(1, std::memory_order_release);
  wake_all();
  return true;
}

void ThreadWorld::spin_until_generation_changes(uint64_t generation) const {
  if (size() > backend::core_count()) return;  // the others need this core
  spin_until([&] { return generation_.load(std::memory_order_acquire) != generation; });
}

void ThreadWorld::meet(const Caller& caller) {
  Lock lock(mutex_);
  ++at_rank(caller.rank).calls;
  refuse_locked(caller);
  count_collective_call();
  settle_refusals();
  refuse_locked(caller);
  check_same_call(caller);
  at_rank(caller.rank).op = caller.op;
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (arrive(lock, caller.rank)) return;
  lock.unlock();
  spin_until_generation_changes(generation);
  lock.lock();
  try {
    wait(
        lock, caller, [&] { return generation_.load(std::memory_order_relaxed) != generation; },
        [&] { return not_arrived(); });
  } catch (...) {
    at_rank(caller.rank).has_arrived = false;
    --arrived_;
    throw;
  }
}

void ThreadWorld::meet_after_copy(int rank) {
  Lock lock(mutex_);
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (arrive(lock, rank)) return;
  lock.unlock();
  spin_until_generation_changes(generation);
  lock.lock();
  at_rank(rank).wake.wait(
      lock, [&] { return generation_.load(std::memory_order_relaxed) != generation; });
}

ThreadWorld::MessagePtr ThreadWorld::post(const Caller& caller, const void* data, int64_t bytes,
                                          int dst, int tag) {
  auto message = std::make_shared<Message>();
  message->src = caller.rank;
  message->tag = tag;
  message->bytes = bytes;
  message->data = data;
  if (bytes <= kCopiedBytes || dst == caller.rank) {
    const char* begin = static_cast<const char*>(data);
    message->owned.assign(begin, begin + bytes);
    message->data = message->owned.data();
  }
  const Lock lock(mutex_);
  refuse_locked(caller);
  at_rank(dst).inbox.push_back(message);
  at_rank(dst).wake.notify_all();
  return message;
}

void ThreadWorld::withdraw(Lock& lock, int rank, const MessagePtr& message, int dst) noexcept {
  if (message->state == MessageState::kWaiting) {
    at_rank(dst).inbox.remove(message);
    return;
  }
  // The receiver is copying from the sender's buffer: that ends by itself.
  at_rank(rank).wake.wait(lock, [&] { return message->state == MessageState::kDone; });
}

void ThreadWorld::finish_send(Lock& lock, const Caller& caller, const MessagePtr& message,
                              int dst) {
  if (!message->owned.empty() || message->bytes == 0) return;
  try {
    wait(
        lock, caller, [&] { return message->state == MessageState::kDone; },
        [&] { return std::vector<int>{dst}; });
  } catch (...) {
    withdraw(lock, caller.rank, message, dst);
    throw;
  }
}

void ThreadWorld::send(const Caller& caller, const void* data, int64_t bytes, int dst, int tag) {
  const MessagePtr message = post(caller, data, bytes, dst, tag);
  Lock lock(mutex_);
  finish_send(lock, caller, message, dst);
}

void ThreadWorld::recv(const Caller& caller, void* data, int64_t bytes, int src, int tag) {
  Lock lock(mutex_);
  refuse_locked(caller);
  std::list<MessagePtr>& inbox = at_rank(caller.rank).inbox;
  auto found = inbox.end();
  wait(
      lock, caller,
      [&] {
        found = std::find_if(inbox.begin(), inbox.end(), [&](const MessagePtr& message) {
          return message->src == src && message->tag == tag;
        });
        return found != inbox.end();
      },
      [&] { return std::vector<int>{src}; });
  const MessagePtr message = *found;
  if (message->bytes != bytes) {
    fail_and_throw(caller, caller.rank,
                   cat("expects ", bytes, " bytes from rank ", src, " with tag ", tag,
                       ", the message has ", message->bytes));
  }
  inbox.erase(found);
  message->state = MessageState::kCopying;
  lock.unlock();
  copy_bytes(data, message->data, bytes);
  lock.lock();
  message->state = MessageState::kDone;
  if (message->owned.empty()) at_rank(src).wake.notify_all();
}

void ThreadWorld::sendrecv(const Caller& caller, const void* send_data, int64_t send_bytes, int dst,
                           void* recv_data, int64_t recv_bytes, int src, int tag) {
  const MessagePtr message = post(caller, send_data, send_bytes, dst, tag);
  try {
    recv(caller, recv_data, recv_bytes, src, tag);
  } catch (...) {
    Lock lock(mutex_);
    if (message->owned.empty()) withdraw(lock, caller.rank, message, dst);
    throw;
  }
  Lock lock(mutex_);
  finish_send(lock, caller, message, dst);
}

void ThreadWorld::refuse_locked(const Caller& caller) {
  if (!failure_.empty()) throw_failure(caller);
}

void ThreadWorld::refuse_call(int rank, const std::string& text) {
  const Lock lock(mutex_);
  Rank& self = at_rank(rank);
  self.refused_calls.insert(++self.calls);
  count_collective_call();
  refusals_.push_back({rank, self.calls, text});
  settle_refusals();
}

void ThreadWorld::refuse_message(int rank, const std::string& text) {
  const Lock lock(mutex_);
  at_rank(rank).refused_message = text;
  at_rank(rank).refused_message_at = at_rank(rank).calls;
  wake_all();
}

void ThreadWorld::settle_refusals() {
  std::erase_if(refusals_, [&](const Refusal& refusal) {
    bool have_all_come = true;
    for (const Rank& each : ranks_) {
      if (each.calls < refusal.call) {
        have_all_come = false;
      } else if (!each.refused_calls.contains(refusal.call)) {
        fail_here(in_root(refusal.rank), cat("rank ", refusal.rank, " of ", size(),
                                             " refused its arguments: ", refusal.text));
        at_rank(refusal.rank).knows_failure = true;
        return true;
      }
    }
    return have_all_come;
  });
}

int64_t ThreadWorld::calls(int rank) {
  const Lock lock(mutex_);
  return at_rank(rank).calls;
}

std::string ThreadWorld::failure() {
  const Lock lock(mutex_);
  return failure_;
}

bool ThreadWorld::is_failure_reported(int rank) {
  const Lock lock(mutex_);
  return !failure_.empty() && at_rank(rank).knows_failure;
}

void ThreadWorld::add_child(const std::shared_ptr<ThreadWorld>& child) {
  const Lock lock(mutex_);
  std::erase_if(children_, [](const auto& weak) { return weak.expired(); });
  children_.push_back(child);
}

}  // namespace cuop::dist
