#include "cuop/dist/comm/socket_hub.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

class SocketHub::Sending final : public Request {
 public:
  Sending(SocketHub& hub, int dst, std::shared_ptr<Outgoing> frame)
      : hub_(hub), dst_(dst), frame_(std::move(frame)) {}
  ~Sending() override {
    if (frame_->is_done()) return;
    auto& queue = hub_.peer(dst_).outgoing;
    if (frame_->moved == 0) {
      std::erase(queue, frame_);
      return;
    }
    // A frame that has begun must be finished, else the stream is spoilt; from a copy, because the
    // buffer goes away.
    frame_->owned.assign(frame_->data, frame_->data + frame_->header.bytes);
    frame_->data = frame_->owned.data();
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  bool test() override {
    if (frame_->is_done()) return true;
    hub_.progress();
    if (frame_->is_done()) return true;
    const std::string& lost = hub_.peer(dst_).lost;
    if (!lost.empty()) throw CommunicationError(lost, dst_);
    return false;
  }
  int64_t moved() const override { return frame_->moved; }

 private:
  SocketHub& hub_;
  int dst_;
  std::shared_ptr<Outgoing> frame_;
};

class SocketHub::Receiving final : public Request {
 public:
  Receiving(SocketHub& hub, int src, std::shared_ptr<Posted> posted)
      : hub_(hub), src_(src), posted_(std::move(posted)) {}
  ~Receiving() override {
    if (!posted_->message) {
      std::erase(hub_.peer(src_).posted, posted_);
    } else if (posted_->message->target == posted_->data) {
      posted_->message->target = nullptr;  // what is still to come is read and dropped
    }
  }
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  bool test() override {
    if (is_done_) return true;
    hub_.progress();
    const std::shared_ptr<Incoming>& message = posted_->message;
    if (message && message->header.bytes != posted_->bytes) {
      throw CommunicationError(cat("expects ", posted_->bytes, " bytes, the message has ",
                                   message->header.bytes, " bytes"));
    }
    if (!message || !message->is_done()) {
      const std::string& lost = hub_.peer(src_).lost;
      if (!lost.empty()) throw CommunicationError(lost, src_);
      return false;
    }
    copy_bytes(posted_->data, message->target, posted_->bytes);
    is_done_ = true;
    return true;
  }
  int64_t moved() const override { return posted_->message ? posted_->message->moved : 0; }

 private:
  SocketHub& hub_;
  int src_;
  std::shared_ptr<Posted> posted_;
  bool is_done_ = false;
};

SocketHub::SocketHub(int rank, std::vector<Socket> links)
    : rank_(rank), peers_(links.size()), discarded_(64 * 1024) {
  for (size_t i = 0; i < links.size(); ++i) peers_[i].link = std::move(links[i]);
}

std::unique_ptr<Request> SocketHub::post_send(const void* data, int64_t bytes, int dst,
                                              const FrameKey& key) {
  auto frame = std::make_shared<Outgoing>();
  frame->header = {bytes, key, kData, -1};
  frame->data = static_cast<const char*>(data);
  peer(dst).outgoing.push_back(frame);
  write(peer(dst));
  return std::make_unique<Sending>(*this, dst, std::move(frame));
}

std::unique_ptr<Request> SocketHub::post_recv(void* data, int64_t bytes, int src,
                                              const FrameKey& key) {
  Peer& from = peer(src);
  auto posted = std::make_shared<Posted>();
  *posted = {key, static_cast<char*>(data), bytes, nullptr};
  // Messages from before a recovery will never be asked for.
  std::erase_if(from.unexpected, [&](const auto& message) {
    const FrameKey& old = message->header.key;
    return old.context == key.context && old.epoch < key.epoch;
  });
  const auto found = std::find_if(from.unexpected.begin(), from.unexpected.end(),
                                  [&](const auto& each) { return each->header.key == key; });
  if (found != from.unexpected.end()) {
    posted->message = *found;
    from.unexpected.erase(found);
  } else {
    from.posted.push_back(posted);
  }
  return std::make_unique<Receiving>(*this, src, std::move(posted));
}

void SocketHub::send_control(int dst, uint64_t context, const Control& message) {
  auto frame = std::make_shared<Outgoing>();
  frame->owned.assign(message.text.begin(),
                      message.text.begin() +
                          static_cast<std::ptrdiff_t>(std::min(message.text.size(), kControlText)));
  frame->data = frame->owned.data();
  frame->header = {static_cast<int64_t>(frame->owned.size()),
                   {context, message.epoch, 0},
                   static_cast<int32_t>(message.kind),
                   message.blamed};
  peer(dst).outgoing.push_back(std::move(frame));
  write(peer(dst));
}

std::optional<Control> SocketHub::poll_control(uint64_t context) {
  progress();
  const auto found = controls_.find(context);
  if (found == controls_.end() || found->second.empty()) return std::nullopt;
  Control message = std::move(found->second.front());
  found->second.pop_front();
  return message;
}

void SocketHub::write(Peer& peer) {
  if (!peer.lost.empty()) return;
  try {
    while (!peer.outgoing.empty()) {
      Outgoing& frame = *peer.outgoing.front();
      constexpr int64_t kHead = sizeof(Header);
      const int64_t moved =
          frame.moved < kHead
              ? peer.link.write_some(at(&frame.header, frame.moved), kHead - frame.moved)
              : peer.link.write_some(at(frame.data, frame.moved - kHead),
                                     frame.length() - frame.moved);
      frame.moved += moved;
      if (frame.is_done()) {
        peer.outgoing.pop_front();
      } else if (moved == 0) {
        return;
      }
    }
  } catch (const CommunicationError& error) {
    peer.lost = error.what();
  }
}

/// The header is complete: where do the bytes go?
void SocketHub::begin_arrival(Peer& peer) {
  peer.header_moved = 0;
  peer.arriving = std::make_shared<Incoming>();
  Incoming& message = *peer.arriving;
  message.header = peer.header;
  if (message.header.control == kData) {
    const auto found = std::find_if(peer.posted.begin(), peer.posted.end(), [&](const auto& each) {
      return each->key == message.header.key;
    });
    if (found != peer.posted.end()) {
      (*found)->message = peer.arriving;
      if ((*found)->bytes == message.header.bytes) message.target = (*found)->data;
      peer.posted.erase(found);
      return;
    }
    peer.unexpected.push_back(peer.arriving);
  }
  message.owned.resize(static_cast<size_t>(message.header.bytes));
  message.target = message.owned.data();
}

void SocketHub::end_arrival(int src, Peer& peer) {
  const Incoming& message = *peer.arriving;
  if (message.header.control != kData) {
    controls_[message.header.key.context].push_back(
        {src, static_cast<ControlKind>(message.header.control), message.header.key.epoch,
         message.header.blamed, std::string(message.owned.begin(), message.owned.end())});
  }
  peer.arriving.reset();
}

void SocketHub::read(int src, Peer& peer) {
  if (!peer.lost.empty()) return;
  constexpr int64_t kHead = sizeof(Header);
  try {
    for (;;) {
      if (!peer.arriving) {
        const int64_t moved =
            peer.link.read_some(at(&peer.header, peer.header_moved), kHead - peer.header_moved);
        peer.header_moved += moved;
        if (peer.header_moved < kHead) {
          if (moved == 0) return;
          continue;
        }
        begin_arrival(peer);
      }
      Incoming& message = *peer.arriving;
      while (!message.is_done()) {
        const int64_t left = message.header.bytes - message.moved;
        const int64_t moved =
            message.target != nullptr
                ? peer.link.read_some(message.target + message.moved, left)
                : peer.link.read_some(discarded_.data(),
                                      std::min(left, static_cast<int64_t>(discarded_.size())));
        if (moved == 0) return;
        message.moved += moved;
      }
      end_arrival(src, peer);
    }
  } catch (const CommunicationError& error) {
    peer.lost = error.what();
  }
}

void SocketHub::progress() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (static_cast<int>(i) == rank_) continue;
    write(peers_[i]);
    read(static_cast<int>(i), peers_[i]);
  }
}

void SocketHub::sleep(double seconds) const {
  std::vector<Interest> interests;
  for (const Peer& each : peers_) {
    if (!each.link.is_open() || !each.lost.empty()) continue;
    interests.push_back({each.link.descriptor(), !each.outgoing.empty()});
  }
  wait_for_any(interests.data(), interests.size(), seconds);
}

}  // namespace cuop::dist
