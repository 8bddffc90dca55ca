#include "cuop/dist/comm/socket_hub.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

namespace {

/// Looks that are answered at once before the thread sleeps until something arrives.
constexpr int kSpins = 50;
constexpr double kFlushSeconds = 0.1;
constexpr double kSleepSeconds = 0.002;  // between two readings of the deadline's clock

}  // namespace

/// A message to or from `peer` under way, given up with this.
template <class Message>
class SocketHub::UnderWay : public Delivery, private NonCopyable {
 public:
  UnderWay(SocketHub& hub, int peer, std::shared_ptr<Message> message)
      : hub_(hub), peer_(peer), message_(std::move(message)) {}
  ~UnderWay() override {
    const std::lock_guard lock(hub_.mutex_);
    hub_.peer(peer_).give_up(message_);
  }

 protected:
  void check_connected() {
    const std::string& lost = hub_.peer(peer_).lost();
    if (!lost.empty()) throw CommunicationError(lost, peer_);
  }

  SocketHub& hub_;
  int peer_;
  std::shared_ptr<Message> message_;
};

class SocketHub::Sending final : public UnderWay<SocketPeer::Outbound> {
 public:
  using UnderWay::UnderWay;
  bool test() override {
    const std::lock_guard lock(hub_.mutex_);
    if (!message_->is_done) hub_.progress_locked();
    if (!message_->is_done) check_connected();
    return message_->is_done;
  }
  int64_t moved() const override {
    const std::lock_guard lock(hub_.mutex_);
    return message_->written;
  }
};

class SocketHub::Receiving final : public UnderWay<SocketPeer::Posted> {
 public:
  using UnderWay::UnderWay;
  bool test() override {
    if (is_done_) return true;
    const std::lock_guard lock(hub_.mutex_);
    hub_.progress_locked();
    const SocketPeer::Posted& posted = *message_;
    const std::shared_ptr<SocketPeer::Inbound>& message = posted.message;
    if (message && message->header.bytes != posted.bytes) {
      throw CommunicationError(cat("expects ", posted.bytes, " bytes, the message has ",
                                   message->header.bytes, " bytes"));
    }
    if (!message || !message->is_done) {
      check_connected();
      return false;
    }
    if (!message->owned.empty()) copy_bytes(posted.data, message->owned.data(), posted.bytes);
    is_done_ = true;
    return true;
  }
  int64_t moved() const override {
    const std::lock_guard lock(hub_.mutex_);
    return message_->message ? message_->message->moved : 0;
  }

 private:
  bool is_done_ = false;
};

SocketHub::SocketHub(int rank, std::vector<Socket> links, std::vector<std::string> hosts)
    : rank_(rank), hosts_(std::move(hosts)) {
  peers_.reserve(links.size());
  for (Socket& link : links) peers_.emplace_back(std::move(link));
}

/// The first rank on the same host.
int SocketHub::host_of(int rank) const {
  const auto first = std::find(hosts_.begin(), hosts_.end(), hosts_[static_cast<size_t>(rank)]);
  return static_cast<int>(first - hosts_.begin());
}

DeliveryPtr SocketHub::post_send(const void* data, int64_t bytes, int dst, const MessageKey& key) {
  const std::lock_guard lock(mutex_);
  auto message = peer(dst).send(data, bytes, key);
  if (peer(dst).write()) tell_sleepers();
  return std::make_unique<Sending>(*this, dst, std::move(message));
}

DeliveryPtr SocketHub::post_recv(void* data, int64_t bytes, int src, const MessageKey& key) {
  const std::lock_guard lock(mutex_);
  auto posted = peer(src).expect(data, bytes, key);
  if (peer(src).write()) tell_sleepers();
  return std::make_unique<Receiving>(*this, src, std::move(posted));
}

void SocketHub::send_control(int dst, uint64_t context, const Control& message) noexcept {
  FrameHeader header{};
  header.tag = static_cast<int32_t>(message.kind);
  header.context = context;
  header.epoch = message.epoch;
  header.blamed = message.blamed;
  const std::lock_guard lock(mutex_);
  peer(dst).notify(header, message.text);
  if (peer(dst).write()) tell_sleepers();
}

std::optional<Control> SocketHub::poll_control(uint64_t context) {
  const std::lock_guard lock(mutex_);
  progress_locked();
  const auto found = controls_.find(context);
  if (found == controls_.end()) return std::nullopt;
  Control message = std::move(found->second.front());
  found->second.pop_front();
  --kept_controls_;
  if (found->second.empty()) controls_.erase(found);
  return message;
}

bool SocketHub::is_lost(int rank) {
  const std::lock_guard lock(mutex_);
  return rank != rank_ && !peer(rank).lost().empty();
}

/// Until the network has taken all notices, within a moment: this rank may leave next.
void SocketHub::flush() noexcept {
  const double deadline = steady_seconds() + kFlushSeconds;
  const std::lock_guard lock(mutex_);
  const auto has_notices = [](const SocketPeer& peer) { return peer.has_notices(); };
  while (std::any_of(peers_.begin(), peers_.end(), has_notices) && steady_seconds() < deadline) {
    progress_locked();
  }
}

void SocketHub::keep(int src, const SocketPeer::Notice& notice) {
  if (kept_controls_ == kMostNotices) {
    peer(src).lose(cat("socket: more than ", kMostNotices, " notices came that nobody reads"));
    return;
  }
  ++kept_controls_;
  const FrameHeader& header = notice.header;
  controls_[header.context].push_back(
      {src, static_cast<ControlKind>(header.tag), header.epoch, header.blamed, notice.text});
}

void SocketHub::progress() {
  const std::lock_guard lock(mutex_);
  progress_locked();
}

void SocketHub::progress_locked() {
  bool has_moved = false;
  for (size_t i = 0; i < peers_.size(); ++i) {
    arrived_.clear();
    // A connection that has just been lost is news too.
    const bool was_open = peers_[i].is_open();
    has_moved |= peers_[i].progress(arrived_) || was_open != peers_[i].is_open();
    for (const SocketPeer::Notice& notice : arrived_) keep(static_cast<int>(i), notice);
  }
  if (has_moved) tell_sleepers();
}

void SocketHub::tell_sleepers() {
  ++moves_;
  changed_.notify_all();
  if (is_watched_) alarm_.ring();
}

void SocketHub::idle(int looks, uint64_t& seen) {
  // Another thread may have moved what this one waits for: then it looks again.
  const uint64_t before = std::exchange(seen, moves());
  if (looks >= kSpins) sleep(kSleepSeconds, before);
}

void SocketHub::sleep(double seconds, uint64_t seen) {
  std::unique_lock lock(mutex_);
  if (moves_ != seen) return;
  std::vector<Interest> interests{{alarm_.descriptor(), false}};
  for (const SocketPeer& each : peers_) {
    if (each.is_open()) interests.push_back(each.interest());
  }
  if (is_watched_) {
    // Who watches does not know of what has been queued since.
    if (interests != watched_) alarm_.ring();
    changed_.wait_for(lock, std::chrono::duration<double>(seconds));
    return;
  }
  watched_ = interests;
  is_watched_ = true;
  lock.unlock();
  wait_for_any(interests, seconds);
  lock.lock();
  is_watched_ = false;
  alarm_.silence();
  changed_.notify_all();  // one of the others watches next
}

}  // namespace cuop::dist
