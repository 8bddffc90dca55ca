#include "cuop/dist/comm/packet_hub.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::mutex>;

/// Chunks under way of one message: while one is copied the next ones travel.
constexpr size_t kWindow = 8;

struct ControlHead {
  uint64_t context;
  int64_t epoch;
  int32_t kind;
  int32_t blamed;
};
static_assert(sizeof(ControlHead) + kControlText <= kControlPacket);

template <class Head>
Buffer packed(const Head& head, const void* payload = nullptr, int64_t bytes = 0) {
  Buffer packet(static_cast<int64_t>(sizeof(Head)) + bytes);
  std::memcpy(packet.data.get(), &head, sizeof(Head));
  copy_bytes(packet.data.get() + sizeof(Head), payload, bytes);
  return packet;
}

template <class Head>
const char* payload_of(const Buffer& packet) {
  return packet.data.get() + sizeof(Head);
}

template <class Head>
Head head_of(const Packet& packet) {
  if (packet.content.bytes < static_cast<int64_t>(sizeof(Head))) {
    throw CommunicationError(
        cat("a packet of ", packet.content.bytes, " bytes came from rank ", packet.src));
  }
  Head head;
  std::memcpy(&head, packet.content.data.get(), sizeof(Head));
  return head;
}

/// A short message: complete when the wire has taken it.
class ShortSending final : public Delivery, private NonCopyable {
 public:
  ShortSending(std::shared_ptr<std::mutex> mutex, std::unique_ptr<Parcel> parcel, int64_t bytes)
      : mutex_(std::move(mutex)), parcel_(std::move(parcel)), bytes_(bytes) {}
  ~ShortSending() override {
    const Lock lock(*mutex_);
    parcel_.reset();
  }
  bool test() override {
    const Lock lock(*mutex_);
    if (parcel_ && parcel_->test()) parcel_.reset();
    return parcel_ == nullptr;
  }
  int64_t moved() const override { return parcel_ ? 0 : bytes_; }

 private:
  std::shared_ptr<std::mutex> mutex_;  // the hub's, which it keeps alive
  std::unique_ptr<Parcel> parcel_;
  int64_t bytes_;
};

}  // namespace

/// What is asked of a message under way; the message is given up with this.
template <class Message>
class PacketHub::Posted : public Delivery, private NonCopyable {
 public:
  Posted(std::shared_ptr<PacketHub> hub, std::shared_ptr<Message> message)
      : hub_(std::move(hub)), message_(std::move(message)) {}
  ~Posted() override {
    const Lock lock(hub_->mutex_);
    hub_->give_up(message_);
  }

  int64_t moved() const override {
    const Lock lock(hub_->mutex_);
    return message_->moved;
  }

 protected:
  std::shared_ptr<PacketHub> hub_;
  std::shared_ptr<Message> message_;
};

class PacketHub::Sending final : public Posted<Outgoing> {
 public:
  using Posted::Posted;
  bool test() override {
    const Lock lock(hub_->mutex_);
    if (message_->is_done()) return true;
    hub_->progress();
    if (message_->is_done()) return true;
    if (hub_->peer(message_->dst).has_left) throw CommunicationError("it has ended", message_->dst);
    return false;
  }
};

class PacketHub::Receiving final : public Posted<Incoming> {
 public:
  using Posted::Posted;
  bool test() override {
    const Lock lock(hub_->mutex_);
    const Incoming& message = *message_;
    if (message.is_done()) return true;
    hub_->progress();
    if (message.is_done()) return true;
    if (message.is_matched() && message.length != message.bytes) {
      throw CommunicationError(
          cat("expects ", message.bytes, " bytes, the message has ", message.length, " bytes"));
    }
    if (message.is_matched() && message.limit < message.length) {
      throw CommunicationError(
          cat("expects ", message.bytes, " bytes, the message was given up after ", message.limit));
    }
    // What was announced before the other rank ended still comes.
    if (!message.is_matched() && hub_->peer(message.src).has_left) {
      throw CommunicationError("it has ended", message.src);
    }
    return false;
  }
};

PacketHub::PacketHub(std::unique_ptr<PacketWire> wire, std::string kind)
    : wire_(std::move(wire)), kind_(std::move(kind)), peers_(static_cast<size_t>(wire_->size())) {}

DeliveryPtr PacketHub::post_send(const void* data, int64_t bytes, int dst, const MessageKey& key) {
  const int64_t chunk = chunk_bytes_;
  constexpr int64_t kMostInOne = kDataPacket - static_cast<int64_t>(sizeof(Head));
  Head head{PacketKind::kWhole, key.tag, key.context, key.epoch, bytes, 0, chunk};
  const Lock lock(mutex_);
  if (bytes <= std::min(kMostInOne, chunk)) {
    return std::make_unique<ShortSending>(
        std::shared_ptr<std::mutex>(shared_from_this(), &mutex_),
        wire_->send_packet(dst, Channel::kData, packed(head, data, bytes)), bytes);
  }
  head.kind = PacketKind::kAnnounce;
  head.id = ++last_id_;
  const MemoryAddress address = address_of(data);
  send_packet(dst, packed(head, &address, sizeof(address)));
  const auto message = std::make_shared<Outgoing>(
      Outgoing{.dst = dst, .data = static_cast<const char*>(data), .bytes = bytes, .chunk = chunk});
  outgoing_[head.id] = message;
  return std::make_unique<Sending>(shared_from_this(), message);
}

DeliveryPtr PacketHub::post_recv(void* data, int64_t bytes, int src, const MessageKey& key) {
  const Lock lock(mutex_);
  Peer& from = peer(src);
  const auto message = std::make_shared<Incoming>(
      Incoming{.src = src, .key = key, .data = static_cast<char*>(data), .bytes = bytes});
  // Messages from before a recovery will never be asked for.
  std::erase_if(from.unexpected, [&](const Unexpected& each) {
    return each.head.context == key.context && each.head.epoch < key.epoch;
  });
  const auto found = std::find_if(from.unexpected.begin(), from.unexpected.end(),
                                  [&](const Unexpected& each) { return each.head.key() == key; });
  if (found == from.unexpected.end()) {
    from.posted.push_back(message);
  } else {
    match(*message, found->head, found->packet);
    if (message->is_under_way()) incoming_.push_back(message);
    from.unexpected.erase(found);
  }
  return std::make_unique<Receiving>(shared_from_this(), message);
}

/// The message is here, or it is announced and may come.
void PacketHub::match(Incoming& message, const Head& head, const Buffer& packet) {
  message.length = message.limit = head.bytes;
  if (head.bytes != message.bytes) return;  // its receiver raises
  const int64_t payload = packet.bytes - static_cast<int64_t>(sizeof(Head));
  if (head.kind == PacketKind::kWhole) {
    if (payload != head.bytes) {
      throw CommunicationError(cat("a message of ", head.bytes, " bytes came with ", payload,
                                   " from rank ", message.src));
    }
    copy_bytes(message.data, payload_of<Head>(packet), head.bytes);
    message.moved = head.bytes;
    return;
  }
  message.chunk = head.chunk;
  message.id = head.id;
  MemoryAddress address;
  const bool has_address = payload == static_cast<int64_t>(sizeof(address));
  if (has_address) std::memcpy(&address, payload_of<Head>(packet), sizeof(address));
  if (has_address && can_read(message.src, address)) {
    message.source = address;
  } else {
    ask_for_chunks(message);
  }
}

void PacketHub::ask_for_chunks(Incoming& message) {
  message.tag = last_tag_ = (last_tag_ + 1) % kChunkTags;
  receive_chunks(message);
  send_packet(message.src, {.kind = PacketKind::kGo, .tag = message.tag, .id = message.id});
}

bool PacketHub::can_read(int src, const MemoryAddress& address) {
  if (!reads_memory_ || host_of(src) != host_of(rank())) return false;
  std::optional<bool>& known = peer(src).is_readable;
  if (!known) known = is_readable(address);
  return *known;
}

/// Copies some more of a message out of its sender's memory. After the last piece the sender says
/// whether it had kept the message until then.
void PacketHub::read_piece(Incoming& message) {
  constexpr int64_t kPiece = 1 << 20;  // some 100 us, in which nothing else is looked after
  if (!message.source || message.moved == message.length) return;
  if (message.data == nullptr) {  // given up: its sender need not wait for it
    message.moved = message.length;
  } else {
    const MemoryRun piece{message.moved, std::min(kPiece, message.length - message.moved)};
    if (!read_memory(*message.source, {&piece, 1}, message.data + message.moved)) {
      message.source.reset();
      message.moved = 0;
      return ask_for_chunks(message);
    }
    message.moved += piece.bytes;
  }
  if (message.moved < message.length) return;
  send_packet(message.src, {.kind = PacketKind::kRead, .id = message.id});
}

void PacketHub::end_reading(int src, int64_t id, bool is_intact) {
  for (const auto& message : incoming_) {
    if (message->src != src || message->id != id || !message->source) continue;
    message->source.reset();
    if (!is_intact) message->limit = message->moved = 0;  // what was read means nothing
  }
}

void PacketHub::send_packet(int dst, Buffer packet) {
  if (peer(dst).is_gone) return;
  packets_.push_back({dst, wire_->send_packet(dst, Channel::kData, std::move(packet))});
}

void PacketHub::send_packet(int dst, const Head& head) { send_packet(dst, packed(head)); }

void PacketHub::take(Packet packet) {
  const Head head = head_of<Head>(packet);
  Peer& from = peer(packet.src);
  switch (head.kind) {
    case PacketKind::kWhole:
    case PacketKind::kAnnounce: {
      const auto found = std::find_if(from.posted.begin(), from.posted.end(),
                                      [&](const auto& each) { return each->key == head.key(); });
      if (found == from.posted.end()) {
        from.unexpected.push_back({head, std::move(packet.content)});
        break;
      }
      match(**found, head, packet.content);
      if ((*found)->is_under_way()) incoming_.push_back(*found);
      from.posted.erase(found);
      break;
    }
    case PacketKind::kGo: {
      const auto found = outgoing_.find(head.id);
      if (found == outgoing_.end()) {  // given up meanwhile
        send_packet(packet.src, {.kind = PacketKind::kStop, .tag = head.tag});
      } else {
        found->second->tag = head.tag;
      }
      break;
    }
    case PacketKind::kStop:
      for (const auto& message : incoming_) {
        if (message->src != packet.src || message->tag != head.tag) continue;
        message->limit = head.bytes;
      }
      break;
    case PacketKind::kRead: {
      const auto found = outgoing_.find(head.id);
      const bool is_intact = found != outgoing_.end();
      if (is_intact) {
        found->second->moved = found->second->bytes;
        outgoing_.erase(found);
      }
      send_packet(packet.src,
                  {.kind = is_intact ? PacketKind::kIntact : PacketKind::kVoid, .id = head.id});
      break;
    }
    case PacketKind::kIntact:
    case PacketKind::kVoid:
      end_reading(packet.src, head.id, head.kind == PacketKind::kIntact);
      break;
    case PacketKind::kGoodbye:
      from.has_left = true;
      break;
  }
}

void PacketHub::send_chunks(Outgoing& message) {
  while (!message.parcels.empty() && message.parcels.front()->test()) {
    Buffer chunk = message.parcels.front()->take();
    message.parcels.pop_front();
    message.moved += chunk.bytes;
    buffers_.give_back(std::move(chunk));
  }
  while (message.parcels.size() < kWindow && message.handed < message.bytes) {
    const int64_t bytes = std::min(message.chunk, message.bytes - message.handed);
    Buffer chunk = buffers_.take(bytes);
    copy_bytes(chunk.data.get(), message.data + message.handed, bytes);
    message.parcels.push_back(wire_->send_chunk(message.dst, message.tag, std::move(chunk)));
    message.handed += bytes;
  }
}

void PacketHub::receive_chunks(Incoming& message) {
  while (!message.parcels.empty() && message.moved < message.limit &&
         message.parcels.front()->test()) {
    Buffer chunk = message.parcels.front()->take();
    message.parcels.pop_front();
    if (message.data != nullptr) {
      copy_bytes(message.data + message.moved, chunk.data.get(), chunk.bytes);
    }
    message.moved += chunk.bytes;
    buffers_.give_back(std::move(chunk));
  }
  while (message.parcels.size() < kWindow && message.asked < message.limit) {
    const int64_t bytes = std::min(message.chunk, message.length - message.asked);
    message.parcels.push_back(wire_->receive_chunk(message.src, message.tag, buffers_.take(bytes)));
    message.asked += bytes;
  }
}

void PacketHub::give_up(const std::shared_ptr<Outgoing>& message) {
  if (message->is_done()) return;
  message->data = nullptr;
  std::erase_if(outgoing_, [&](const auto& each) { return each.second == message; });
  message->parcels.clear();  // the wire ends them
  if (message->tag < 0) return;
  try {
    send_packet(message->dst,
                {.kind = PacketKind::kStop, .tag = message->tag, .bytes = message->handed});
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, cat(kind_, ": ", error.what()));
  }
}

void PacketHub::give_up(const std::shared_ptr<Incoming>& message) {
  message->data = nullptr;
  std::erase(peer(message->src).posted, message);
}

void PacketHub::progress() {
  while (const auto packet = wire_->poll_packet(Channel::kControl)) take_control(*packet);
  while (auto packet = wire_->poll_packet(Channel::kData)) take(std::move(*packet));
  std::erase_if(packets_, [](const Sent& each) { return each.parcel->test(); });
  std::erase_if(outgoing_, [&](const auto& each) {
    if (each.second->tag >= 0) send_chunks(*each.second);
    return each.second->is_done();
  });
  std::erase_if(incoming_, [&](const auto& message) {
    read_piece(*message);
    if (message->tag < 0) return !message->source;
    receive_chunks(*message);
    if (message->moved < message->limit) return false;
    message->parcels.clear();  // those for what was not sent
    return true;
  });
}

void PacketHub::send_control(int dst, uint64_t context, const Control& message) noexcept {
  try {
    const ControlHead head{context, message.epoch, static_cast<int32_t>(message.kind),
                           message.blamed};
    const auto bytes = static_cast<int64_t>(std::min(message.text.size(), kControlText));
    const Lock lock(mutex_);
    if (peer(dst).is_gone) return;
    packets_.push_back({dst, wire_->send_packet(dst, Channel::kControl,
                                                packed(head, message.text.data(), bytes))});
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, cat(kind_, ": ", error.what()));
  }
}

void PacketHub::take_control(const Packet& packet) {
  const auto head = head_of<ControlHead>(packet);
  const auto kind = static_cast<ControlKind>(head.kind);
  if (is_parting_ && kind == ControlKind::kAbort) is_failed_ = true;
  const char* text = payload_of<ControlHead>(packet.content);
  const char* const end = packet.content.data.get() + packet.content.bytes;
  controls_[head.context].push_back(
      {packet.src, kind, head.epoch, head.blamed, std::string(text, end)});
}

std::optional<Control> PacketHub::poll_control(uint64_t context) {
  const Lock lock(mutex_);
  progress();
  const auto found = controls_.find(context);
  if (found == controls_.end() || found->second.empty()) return std::nullopt;
  Control message = std::move(found->second.front());
  found->second.pop_front();
  return message;
}

void PacketHub::flush() noexcept {
  constexpr auto kPatience = std::chrono::milliseconds(100);
  try {
    const auto start = Clock::now();
    for (int looks = 0; Clock::now() - start < kPatience; ++looks) {
      {
        const Lock lock(mutex_);
        progress();
        if (packets_.empty()) return;
      }
      wire_->idle(looks);
    }
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, cat(kind_, ": ", error.what()));
  }
}

bool PacketHub::is_lost(int rank) {
  const Lock lock(mutex_);
  return peer(rank).has_left;
}

void PacketHub::note_gone(int rank) noexcept {
  const Lock lock(mutex_);
  peer(rank).has_left = peer(rank).is_gone = true;
  std::erase_if(packets_, [&](const Sent& each) { return each.dst == rank; });
  std::erase_if(outgoing_, [&](const auto& each) { return each.second->dst == rank; });
}

bool PacketHub::part() noexcept {
  constexpr auto kPatience = std::chrono::seconds(5);
  try {
    {
      const Lock lock(mutex_);
      is_parting_ = true;
      for (int each = 0; each < size(); ++each) {
        if (each != rank()) send_packet(each, {.kind = PacketKind::kGoodbye});
      }
      peer(rank()).has_left = true;
    }
    std::optional<Clock::time_point> failed_at;
    for (int looks = 0;; ++looks) {
      {
        const Lock lock(mutex_);
        progress();
        const bool have_all_left =
            std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.has_left; });
        if (have_all_left && packets_.empty()) {
          return std::none_of(peers_.begin(), peers_.end(),
                              [](const Peer& each) { return each.is_gone; });
        }
      }
      if (is_failed_ && !failed_at) failed_at = Clock::now();
      if (failed_at && Clock::now() - *failed_at > kPatience) return false;
      wire_->idle(looks);
    }
  } catch (const std::exception& error) {
    log(LogLevel::kWarn, cat(kind_, ": ", error.what()));
    return false;
  }
}

}  // namespace cuop::dist
