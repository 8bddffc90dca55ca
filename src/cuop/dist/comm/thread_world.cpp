#include "cuop/dist/comm/thread_world.h"

#include <algorithm>
#include <thread>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// Messages up to this length are copied into the inbox, so that their sender goes on at once.
constexpr int64_t kEagerBytes = 16 * 1024;
/// Looks at the meeting's counter before a rank goes to sleep: about as long as waking it takes.
constexpr int kSpins = 2000;

Clock::time_point deadline_after(double seconds) {
  // Clipped to a year: an infinite time-out must not overflow the clock.
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, 3.15e7)));
}

std::string ranks_text(const std::vector<int>& ranks) {
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks));
}

}  // namespace

ThreadWorld::ThreadWorld(int size) : ranks_(static_cast<size_t>(size)) {}

void ThreadWorld::wake_all() {
  for (Rank& rank : ranks_) rank.wake.notify_all();
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
  const Clock::time_point deadline = deadline_after(caller.timeout);
  Rank& self = at_rank(caller.rank);
  while (!ready()) {
    if (!failure_.empty()) throw_failure(caller);
    const std::vector<int> awaited = missing();
    for (int rank : awaited) {
      if (!at_rank(rank).has_left) continue;
      fail_and_throw(caller, rank, cat("waits for rank ", rank, ", which has returned already"));
    }
    if (self.wake.wait_until(lock, deadline) == std::cv_status::timeout && !ready() &&
        failure_.empty()) {
      const std::vector<int> late = missing();
      fail_and_throw(caller, late.size() == 1 ? late[0] : -1,
                     cat("waited ", caller.timeout, " s for ", ranks_text(late)));
    }
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
  for (int i = 0; i < kSpins; ++i) {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    if (i % 16 == 15) std::this_thread::yield();
  }
}

void ThreadWorld::meet(const Caller& caller) {
  Lock lock(mutex_);
  refuse_locked(caller);
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
  if (bytes <= kEagerBytes || dst == caller.rank) {
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

void ThreadWorld::refuse_when_failed(const Caller& caller) {
  const Lock lock(mutex_);
  refuse_locked(caller);
}

void ThreadWorld::throw_failure(const Caller& caller) {
  at_rank(caller.rank).knows_failure = true;
  throw CommunicationError(
      cat(caller.op, ": rank ", caller.rank, " of ", size(), " cannot go on: ", failure_),
      failed_rank_);
}

void ThreadWorld::fail_and_throw(const Caller& caller, int blamed, const std::string& what) {
  const std::string text = cat(caller.op, ": rank ", caller.rank, " of ", size(), " ", what);
  fail_locked(blamed, text);
  at_rank(caller.rank).knows_failure = true;
  throw CommunicationError(text, blamed);
}

void ThreadWorld::fail_locked(int rank, const std::string& reason) {
  if (failure_.empty()) {
    failure_ = reason.empty() ? "no reason was given" : reason;
    failed_rank_ = rank;
    wake_all();
  }
  for (const auto& weak : children_) {
    const auto child = weak.lock();
    if (!child) continue;
    const Lock lock(child->mutex_);
    child->fail_locked(rank, reason);
  }
}

void ThreadWorld::fail(int rank, const std::string& reason) {
  const Lock lock(mutex_);
  fail_locked(rank, reason);
  at_rank(rank).knows_failure = true;
}

std::string ThreadWorld::failure() {
  const Lock lock(mutex_);
  return failure_;
}

bool ThreadWorld::is_failure_reported(int rank) {
  const Lock lock(mutex_);
  return !failure_.empty() && at_rank(rank).knows_failure;
}

void ThreadWorld::reset_locked() {
  // Every rank is inside `recover`, so nobody waits, copies or owns a posted message.
  failure_.clear();
  failed_rank_ = -1;
  arrived_ = 0;
  for (Rank& rank : ranks_) {
    rank.inbox.clear();
    rank.has_arrived = rank.is_recovering = rank.knows_failure = false;
  }
  recovering_ = 0;
  ++recoveries_;
  for (const auto& weak : children_) {
    const auto child = weak.lock();
    if (!child) continue;
    const Lock lock(child->mutex_);
    child->reset_locked();
  }
}

void ThreadWorld::recover(const Caller& caller) {
  Lock lock(mutex_);
  at_rank(caller.rank).is_recovering = true;
  if (++recovering_ == size()) {
    reset_locked();
    wake_all();
    return;
  }
  const uint64_t before = recoveries_;
  const bool is_met =
      at_rank(caller.rank).wake.wait_until(lock, deadline_after(caller.timeout), [&] {
        return recoveries_ != before;
      });
  if (is_met) return;
  std::vector<int> late;
  for (int rank = 0; rank < size(); ++rank) {
    if (!at_rank(rank).is_recovering) late.push_back(rank);
  }
  at_rank(caller.rank).is_recovering = false;
  --recovering_;
  throw CommunicationError(cat("recover: rank ", caller.rank, " of ", size(), " waited ",
                               caller.timeout, " s for ", ranks_text(late)),
                           late.size() == 1 ? late[0] : -1);
}

void ThreadWorld::leave(int rank) {
  const Lock lock(mutex_);
  at_rank(rank).has_left = true;
  wake_all();
}

void ThreadWorld::add_child(const std::shared_ptr<ThreadWorld>& child) {
  const Lock lock(mutex_);
  std::erase_if(children_, [](const auto& weak) { return weak.expired(); });
  children_.push_back(child);
}

}  // namespace cuop::dist
