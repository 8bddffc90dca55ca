// Messages over a wire that moves packets. A short message is one packet. A long one is announced;
// when its receiver has asked for it, it follows in chunks, so that it takes no memory where nobody
// wants it yet and control messages pass it by. All that is under way lies in the wire's memory: a
// message that is given up never touches its buffer again.
//
// Rank 0 sends 1 MB to rank 1:   0 -> 1 announce (id 7, 1 MB)
//                                1 -> 0 go (id 7, tag 12), once a receive of that key is posted
//                                0 -> 1 chunks with tag 12
// When rank 0 gives it up:       0 -> 1 stop (tag 12, so many bytes were sent)
// When rank 1 does, it takes what is sent and drops it.
// Where rank 1 can read the memory of rank 0 (peer_memory.h), it copies from there instead:
//                                1 -> 0 read (id 7)
//                                0 -> 1 intact (id 7): the message was not given up before; or void
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/comm/hub.h"
#include "cuop/dist/comm/packet_wire.h"
#include "cuop/dist/comm/peer_memory.h"

namespace cuop::dist {

class PacketHub final : public Hub, public std::enable_shared_from_this<PacketHub> {
 public:
  PacketHub(std::unique_ptr<PacketWire> wire, std::string kind);

  int rank() const override { return wire_->rank(); }
  int size() const override { return wire_->size(); }
  std::string_view kind() const override { return kind_; }
  int host_of(int rank) const override { return wire_->host_of(rank); }
  DeliveryPtr post_send(const void* data, int64_t bytes, int dst, const MessageKey& key) override;
  DeliveryPtr post_recv(void* data, int64_t bytes, int src, const MessageKey& key) override;
  void send_control(int dst, uint64_t context, const Control& message) noexcept override;
  std::optional<Control> poll_control(uint64_t context) override;
  void flush() noexcept override;
  void idle(int looks, uint64_t&) override { wire_->idle(looks); }
  void note_failure(bool is_failed) noexcept override { is_failed_ = is_failed; }
  bool is_lost(int rank) override;
  void note_gone(int rank) noexcept override;

  /// The end of this process: tells the others, whose waits for it raise from then on, and waits
  /// for theirs. False when one is gone, or is missing 5 s after a failure that nobody recovered
  /// from.
  bool part() noexcept;

  /// The longest piece of a message from now on.
  void set_chunk_bytes(int64_t bytes) { chunk_bytes_ = bytes; }
  /// Whether messages from ranks of this host may be read in their memory; initially they may.
  void set_reads_memory(bool reads) { reads_memory_ = reads; }

 private:
  enum class PacketKind : int32_t {
    kWhole,
    kAnnounce,
    kGo,
    kStop,
    kGoodbye,
    kRead,
    kIntact,
    kVoid
  };
  struct Head {
    PacketKind kind = PacketKind::kWhole;
    int32_t tag = 0;  // the message's; of kGo and kStop the chunks'
    uint64_t context = 0;
    int64_t epoch = 0;
    int64_t bytes = 0;
    int64_t id = 0;     // of a long message, at its sender
    int64_t chunk = 0;  // bytes of all its chunks but the last
    MessageKey key() const { return {context, epoch, tag}; }
  };
  struct Outgoing {
    int dst;
    const char* data;  // null when given up
    int64_t bytes;
    int64_t chunk;
    int32_t tag = -1;  // of the chunks, once the receiver has asked for them
    int64_t handed = 0;
    int64_t moved = 0;
    std::deque<std::unique_ptr<Parcel>> parcels = {};
    bool is_done() const { return moved == bytes; }
  };
  struct Incoming {
    int src;
    MessageKey key;
    char* data;  // null when given up
    int64_t bytes;
    int64_t length = -1;  // the message's, once it is there or announced
    int64_t limit = 0;    // what of it will come
    int64_t chunk = 0;
    int32_t tag = -1;
    int64_t asked = 0;
    int64_t moved = 0;
    std::deque<std::unique_ptr<Parcel>> parcels = {};
    int64_t id = 0;  // of a long message, at its sender
    std::optional<MemoryAddress> source =
        {};  // where it is read until its sender has said "intact"
    bool is_matched() const { return length >= 0; }
    bool is_under_way() const { return tag >= 0 || source; }
    bool is_done() const { return length == bytes && moved == length && !source; }
  };
  struct Unexpected {
    Head head;
    Buffer packet;  // with a short message, or the address of a long one
  };
  struct Peer {
    std::list<Unexpected> unexpected;
    std::list<std::shared_ptr<Incoming>> posted;
    bool has_left = false;
    bool is_gone = false;                  // and nothing is sent to it
    std::optional<bool> is_readable = {};  // its memory; none before it was tried
  };
  struct Sent {
    int dst;
    std::unique_ptr<Parcel> parcel;
  };
  template <class Message>
  class Posted;
  class Sending;
  class Receiving;

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  void progress();
  void send_packet(int dst, Buffer packet);
  void send_packet(int dst, const Head& head);
  void take(Packet packet);
  void take_control(const Packet& packet);
  void match(Incoming& message, const Head& head, const Buffer& packet);
  void send_chunks(Outgoing& message);
  void receive_chunks(Incoming& message);
  void ask_for_chunks(Incoming& message);
  bool can_read(int src, const MemoryAddress& address);
  void read_piece(Incoming& message);
  void end_reading(int src, int64_t id, bool is_intact);
  void give_up(const std::shared_ptr<Outgoing>& message);
  void give_up(const std::shared_ptr<Incoming>& message);

  std::mutex mutex_;
  std::unique_ptr<PacketWire> wire_;
  std::string kind_;
  std::vector<Peer> peers_;
  std::map<uint64_t, std::deque<Control>> controls_;
  std::list<Sent> packets_;  // not complete
  std::map<int64_t, std::shared_ptr<Outgoing>> outgoing_;
  std::list<std::shared_ptr<Incoming>> incoming_;  // long messages that were asked for
  Buffers buffers_;
  int64_t last_id_ = 0;
  int32_t last_tag_ = 0;
  std::atomic<int64_t> chunk_bytes_ = int64_t{128} << 10;
  std::atomic<bool> reads_memory_ = true;
  std::atomic<bool> is_failed_ = false;
  bool is_parting_ = false;
};

}  // namespace cuop::dist
