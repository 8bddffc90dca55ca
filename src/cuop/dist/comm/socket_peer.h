// The connection to one other rank: messages go out frame by frame as far as the network takes them
// and come in as far as they have arrived, whenever somebody looks. Its owner (socket_hub.h) sees
// to it that one thread at a time is here.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuop/dist/comm/socket_frame.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist {

class SocketPeer {
 public:
  /// A message on its way out.
  struct Outbound {
    FrameHeader header{};  // kEager or kOffer
    const char* data = nullptr;
    int64_t queued = 0;   // bytes that are in frames
    int64_t written = 0;  // bytes that the network has taken
    bool is_done = false;
  };
  /// A message that has begun to arrive, or is offered.
  struct Inbound {
    FrameHeader header{};
    char* target = nullptr;  // null while nobody wants the bytes, or no more
    int64_t moved = 0;
    std::vector<char> owned;
    bool is_done = false;
  };
  /// A buffer that waits for a message.
  struct Posted {
    MessageKey key;
    char* data = nullptr;
    int64_t bytes = 0;
    std::shared_ptr<Inbound> message;  // once it is known
  };
  /// A short text for whoever polls the communicator.
  struct Notice {
    FrameHeader header{};
    std::string text;
  };

  /// A closed link is this rank's own place: nothing ever moves there.
  explicit SocketPeer(Socket link) : link_(std::move(link)) {}

  std::shared_ptr<Outbound> send(const void* data, int64_t bytes, const MessageKey& key);
  std::shared_ptr<Posted> expect(void* data, int64_t bytes, const MessageKey& key);
  /// After this the buffer is not touched any more.
  void give_up(const std::shared_ptr<Outbound>& message);
  void give_up(const std::shared_ptr<Posted>& posted);
  /// Passes all messages, also the rest of a long one.
  void notify(FrameHeader header, std::string text);

  /// Writes what can be written now, within a share of time; true when anything was.
  bool write();
  /// Moves what can be moved now, within a share of time; true when anything was. Notices that have
  /// arrived are added.
  bool progress(std::vector<Notice>& notices);
  /// Why nothing moves any more, or "".
  const std::string& lost() const { return lost_; }
  void lose(const std::string& why);
  /// Whether a notice is still to go.
  bool has_notices() const {
    return is_open() && cannot_write_.empty() &&
           (!notices_.empty() || (has_frame_ && frame_.header.kind == FrameKind::kNotice));
  }
  bool is_open() const { return link_.is_open() && lost_.empty(); }
  Interest interest() const;

 private:
  struct Frame {
    FrameHeader header{};
    const char* data = nullptr;
    int64_t moved = 0;       // of header and payload
    std::string owned = {};  // what `data` points into, for notices and what was given up
    std::shared_ptr<Outbound> message = {};
  };

  bool next_frame();
  void queue_piece(const std::shared_ptr<Outbound>& message);
  void end_frame();
  void answer(FrameKind kind, uint64_t id, int64_t bytes);

  int64_t read_payload();
  void begin_arrival(std::vector<Notice>& notices);
  void begin_message();
  void begin_piece();
  void take_grant();
  void take_credit();
  void end_arrival(std::vector<Notice>& notices);
  std::list<std::shared_ptr<Posted>>::iterator find_posted(const MessageKey& key);
  void match(Posted& posted, const std::shared_ptr<Inbound>& message);
  void grant(const std::shared_ptr<Inbound>& message);
  void return_credit(const Inbound& message);

  Socket link_;
  std::string lost_;
  std::string cannot_write_;  // what the other side has said before it went can still be read

  std::deque<Frame> notices_;                      // to go before all else
  std::deque<Frame> messages_;                     // short ones, and offers
  std::deque<std::shared_ptr<Outbound>> granted_;  // their pieces go in turn
  std::map<uint64_t, std::shared_ptr<Outbound>> offered_;
  bool has_frame_ = false;
  Frame frame_;  // under way
  uint64_t offers_ = 0;
  int64_t eager_sent_ = 0;      // counted by eager_cost
  int64_t eager_returned_ = 0;  // as the other side has said

  FrameHeader header_{};
  int64_t header_moved_ = 0;
  int64_t payload_left_ = 0;
  std::shared_ptr<Inbound> arriving_;  // null while a notice or nothing known arrives
  std::string text_;
  std::list<std::shared_ptr<Inbound>> unexpected_;
  size_t unexpected_offers_ = 0;
  std::list<std::shared_ptr<Posted>> posted_;
  std::map<uint64_t, std::shared_ptr<Inbound>> awaited_;  // granted by this side
  int64_t eager_taken_ = 0;                               // all that has come
  int64_t eager_asked_ = 0;                               // of that, what was asked for
  int64_t eager_told_ = 0;                                // of that, what the other side knows
};

}  // namespace cuop::dist
