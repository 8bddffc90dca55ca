#include "cuop/dist/comm/socket_peer.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

namespace {

constexpr int64_t kHead = sizeof(FrameHeader);
/// One look at a connection moves about so much and then lets others look at theirs.
constexpr int64_t kTurnBytes = 4 * kPieceBytes;
/// Bytes that nobody wants any more.
constexpr int64_t kDiscardBytes = 16 * 1024;

}  // namespace

void SocketPeer::lose(const std::string& why) {
  if (!lost_.empty()) return;
  lost_ = why;
  link_.close();  // so that the other side sees it too
}

Interest SocketPeer::interest() const {
  return {link_.descriptor(),
          has_frame_ || !notices_.empty() || !messages_.empty() || !granted_.empty()};
}

// ---- out ----

std::shared_ptr<SocketPeer::Outbound> SocketPeer::send(const void* data, int64_t bytes,
                                                       const MessageKey& key) {
  auto message = std::make_shared<Outbound>();
  const bool is_eager =
      bytes <= kEagerBytes && eager_sent_ - eager_returned_ + eager_cost(bytes) <= kEagerWindow;
  message->data = static_cast<const char*>(data);
  message->header = {kFrameMark, is_eager ? FrameKind::kEager : FrameKind::kOffer,
                     bytes,      key.context,
                     key.epoch,  0,
                     key.tag,    -1};
  Frame frame{message->header, message->data, 0, {}, message};
  if (is_eager) {
    eager_sent_ += eager_cost(bytes);
  } else {
    message->header.id = frame.header.id = ++offers_;
    offered_[offers_] = message;
  }
  messages_.push_back(std::move(frame));
  return message;
}

void SocketPeer::give_up(const std::shared_ptr<Outbound>& message) {
  if (message->is_done) return;
  offered_.erase(message->header.id);
  std::erase(granted_, message);
  const auto unsent =
      std::erase_if(messages_, [&](const Frame& frame) { return frame.message == message; });
  if (unsent > 0 && message->header.kind == FrameKind::kEager) {
    eager_sent_ -= eager_cost(message->header.bytes);
  }
  if (!has_frame_ || frame_.message != message) return;
  // A frame that has begun must be finished, else the stream is spoilt; from a copy, because the
  // buffer goes away.
  const int64_t payload = payload_of(frame_.header);
  if (payload > 0) frame_.owned.assign(frame_.data, static_cast<size_t>(payload));
  frame_.data = frame_.owned.data();
  frame_.message.reset();
}

void SocketPeer::notify(FrameHeader header, std::string text) {
  if (text.size() > kControlText) text.resize(kControlText);
  header.mark = kFrameMark;
  header.kind = FrameKind::kNotice;
  header.bytes = static_cast<int64_t>(text.size());
  notices_.push_back({header, nullptr, 0, std::move(text), nullptr});
}

void SocketPeer::answer(FrameKind kind, uint64_t id, int64_t bytes) {
  notices_.push_back({{kFrameMark, kind, bytes, 0, 0, id, 0, -1}, nullptr, 0, {}, nullptr});
}

/// Puts the next frame under way: notices first, then messages, then the pieces of long ones.
bool SocketPeer::next_frame() {
  if (has_frame_) return true;
  if (!notices_.empty()) {
    frame_ = std::move(notices_.front());
    notices_.pop_front();
    frame_.data = frame_.owned.data();
  } else if (!messages_.empty()) {
    frame_ = std::move(messages_.front());
    messages_.pop_front();
  } else if (!granted_.empty()) {
    const std::shared_ptr<Outbound> message = granted_.front();
    granted_.pop_front();
    queue_piece(message);
  } else {
    return false;
  }
  has_frame_ = true;
  return true;
}

void SocketPeer::queue_piece(const std::shared_ptr<Outbound>& message) {
  const int64_t bytes = std::min(kPieceBytes, message->header.bytes - message->queued);
  frame_ = {message->header, message->data + message->queued, 0, {}, message};
  frame_.header.kind = FrameKind::kPiece;
  frame_.header.bytes = bytes;
  message->queued += bytes;
  if (message->queued < message->header.bytes) granted_.push_back(message);
}

void SocketPeer::end_frame() {
  has_frame_ = false;
  if (!frame_.message) return;
  Outbound& message = *frame_.message;
  const bool is_whole =
      frame_.header.kind == FrameKind::kEager ||
      (frame_.header.kind == FrameKind::kPiece && message.written == message.header.bytes);
  if (is_whole) message.is_done = true;
  frame_.message.reset();
}

bool SocketPeer::write() {
  if (!is_open() || !cannot_write_.empty()) return false;
  int64_t total = 0;
  try {
    while (total < kTurnBytes && next_frame()) {
      const int64_t payload = payload_of(frame_.header);
      const int64_t moved = frame_.moved < kHead
                                ? link_.write_some(at(&frame_.header, frame_.moved),
                                                   kHead - frame_.moved, payload > 0)
                                : link_.write_some(at(frame_.data, frame_.moved - kHead),
                                                   kHead + payload - frame_.moved);
      if (frame_.message && frame_.moved >= kHead) frame_.message->written += moved;
      frame_.moved += moved;
      total += moved;
      if (frame_.moved == kHead + payload) {
        end_frame();
      } else if (moved == 0) {
        break;
      }
    }
  } catch (const CommunicationError& error) {
    cannot_write_ = error.what();
  }
  return total > 0;
}

// ---- in ----

std::shared_ptr<SocketPeer::Posted> SocketPeer::expect(void* data, int64_t bytes,
                                                       const MessageKey& key) {
  // Messages from before a recovery will never be asked for.
  for (auto each = unexpected_.begin(); each != unexpected_.end();) {
    const FrameHeader& old = (*each)->header;
    if (old.context == key.context && old.epoch < key.epoch) {
      return_credit(**each);
      each = unexpected_.erase(each);
    } else {
      ++each;
    }
  }
  auto posted = std::make_shared<Posted>();
  *posted = {key, static_cast<char*>(data), bytes, nullptr};
  const auto found = std::find_if(unexpected_.begin(), unexpected_.end(),
                                  [&](const auto& each) { return each->header.key() == key; });
  if (found == unexpected_.end()) {
    posted_.push_back(posted);
    return posted;
  }
  const std::shared_ptr<Inbound> message = *found;
  unexpected_.erase(found);
  return_credit(*message);
  match(*posted, message);
  return posted;
}

void SocketPeer::give_up(const std::shared_ptr<Posted>& posted) {
  if (!posted->message) {
    std::erase(posted_, posted);
    return;
  }
  Inbound& message = *posted->message;
  if (message.target == posted->data) message.target = nullptr;  // the rest is read and dropped
  if (message.header.kind == FrameKind::kOffer) awaited_.erase(message.header.id);
}

std::list<std::shared_ptr<SocketPeer::Posted>>::iterator SocketPeer::find_posted(
    const MessageKey& key) {
  return std::find_if(posted_.begin(), posted_.end(),
                      [&](const auto& each) { return each->key == key; });
}

/// A message and its buffer have found each other. One of another length than the buffer's is left
/// alone: whoever waits for it says so.
void SocketPeer::match(Posted& posted, const std::shared_ptr<Inbound>& message) {
  posted.message = message;
  if (posted.bytes != message->header.bytes) return;
  if (message->header.kind == FrameKind::kEager && !message->owned.empty()) return;  // is copied
  message->target = posted.data;
  if (message->header.kind == FrameKind::kOffer) grant(message);
}

void SocketPeer::grant(const std::shared_ptr<Inbound>& message) {
  answer(FrameKind::kGrant, message->header.id, 0);
  if (message->header.bytes == 0) {
    message->is_done = true;
  } else {
    awaited_[message->header.id] = message;
  }
}

/// The other side may send as much again; it is told so now and then.
void SocketPeer::return_credit(const Inbound& message) {
  if (message.header.kind == FrameKind::kOffer) {
    --unexpected_offers_;
    return;
  }
  eager_asked_ += eager_cost(message.header.bytes);
  if (eager_asked_ - eager_told_ < kEagerWindow / 4) return;
  eager_told_ = eager_asked_;
  answer(FrameKind::kCredit, 0, eager_told_);
}

/// The header is complete: is it one, and where do the bytes go?
void SocketPeer::begin_arrival(std::vector<Notice>& notices) {
  header_moved_ = 0;
  const std::string problem = check_header(header_);
  if (!problem.empty()) throw CommunicationError(cat("socket: ", problem));
  payload_left_ = payload_of(header_);
  arriving_.reset();
  text_.clear();
  switch (header_.kind) {
    case FrameKind::kEager:
    case FrameKind::kOffer:
      begin_message();
      break;
    case FrameKind::kPiece:
      begin_piece();
      break;
    case FrameKind::kGrant:
      take_grant();
      break;
    case FrameKind::kCredit:
      take_credit();
      break;
    case FrameKind::kNotice:
      break;  // its text comes
  }
  if (payload_left_ == 0) end_arrival(notices);
}

void SocketPeer::begin_message() {
  const bool is_eager = header_.kind == FrameKind::kEager;
  const auto message = std::make_shared<Inbound>();
  message->header = header_;
  if (is_eager) {
    arriving_ = message;
    eager_taken_ += eager_cost(header_.bytes);
    if (eager_taken_ - eager_told_ > kEagerWindow) {
      throw CommunicationError(
          cat("socket: more than ", kEagerWindow, " bytes came that this rank has not asked for"));
    }
  } else if (++unexpected_offers_ > kMostOffers) {
    throw CommunicationError(cat("socket: more than ", kMostOffers,
                                 " messages are offered that this rank has not asked for"));
  }
  const auto found = find_posted(header_.key());
  if (found != posted_.end()) {
    const std::shared_ptr<Posted> posted = *found;
    posted_.erase(found);
    return_credit(*message);
    match(*posted, message);
    return;
  }
  unexpected_.push_back(message);
  if (!is_eager) return;
  message->owned.resize(static_cast<size_t>(header_.bytes));
  message->target = message->owned.data();
}

void SocketPeer::begin_piece() {
  const auto found = awaited_.find(header_.id);
  if (found == awaited_.end()) return;  // was given up
  arriving_ = found->second;
  if (arriving_->moved + header_.bytes > arriving_->header.bytes) {
    throw CommunicationError(
        cat("socket: more than the ", arriving_->header.bytes, " bytes that were offered came"));
  }
}

void SocketPeer::take_grant() {
  const auto found = offered_.find(header_.id);
  if (found == offered_.end()) return;  // was given up
  const std::shared_ptr<Outbound> message = found->second;
  offered_.erase(found);
  if (message->header.bytes == 0) {
    message->is_done = true;
  } else {
    granted_.push_back(message);
  }
}

void SocketPeer::take_credit() {
  if (header_.bytes < eager_returned_ || header_.bytes > eager_sent_) {
    throw CommunicationError(cat("socket: ", header_.bytes, " bytes were asked for of ",
                                 eager_sent_, " that were sent"));
  }
  eager_returned_ = header_.bytes;
}

void SocketPeer::end_arrival(std::vector<Notice>& notices) {
  if (header_.kind == FrameKind::kNotice) notices.push_back({header_, std::move(text_)});
  if (arriving_ && arriving_->moved == arriving_->header.bytes) {
    arriving_->is_done = true;
    if (arriving_->header.kind == FrameKind::kOffer) awaited_.erase(arriving_->header.id);
  }
  arriving_.reset();
  text_.clear();
}

bool SocketPeer::progress(std::vector<Notice>& notices) {
  if (!is_open()) return false;
  bool has_moved = write();
  int64_t total = 0;
  try {
    while (total < kTurnBytes) {
      int64_t moved = 0;
      if (payload_left_ == 0) {
        moved = link_.read_some(at(&header_, header_moved_), kHead - header_moved_);
        header_moved_ += moved;
        if (header_moved_ == kHead) begin_arrival(notices);
      } else {
        moved = read_payload();
        payload_left_ -= moved;
        if (payload_left_ == 0) end_arrival(notices);
      }
      if (moved == 0) break;
      total += moved;
    }
  } catch (const CommunicationError& error) {
    lose(error.what());
  }
  // What has come may be answered, or let more go.
  if (total > 0) has_moved = write() || has_moved;
  if (total == 0 && !cannot_write_.empty()) lose(cannot_write_);
  return has_moved || total > 0;
}

int64_t SocketPeer::read_payload() {
  if (arriving_ && arriving_->target != nullptr) {
    const int64_t moved = link_.read_some(arriving_->target + arriving_->moved, payload_left_);
    arriving_->moved += moved;
    return moved;
  }
  char dropped[kDiscardBytes];
  const int64_t moved = link_.read_some(dropped, std::min(payload_left_, kDiscardBytes));
  if (arriving_) arriving_->moved += moved;
  if (header_.kind == FrameKind::kNotice) text_.append(dropped, static_cast<size_t>(moved));
  return moved;
}

}  // namespace cuop::dist
