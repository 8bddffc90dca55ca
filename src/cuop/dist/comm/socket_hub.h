// Messages over the TCP connections of one process: frames are written as far as the network takes
// them and read as far as they have come, whenever somebody looks. A frame that is expected goes
// straight into its buffer, others are kept until they are asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/comm/socket_link.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

/// What messages are told apart by beside their source.
struct FrameKey {
  uint64_t context = 0;  ///< the communicator
  int64_t epoch = 0;
  int32_t tag = 0;
  bool operator==(const FrameKey&) const = default;
};

class SocketHub {
 public:
  /// A connection to every other rank; this rank's own place is closed.
  SocketHub(int rank, std::vector<Socket> links);

  int rank() const { return rank_; }
  std::unique_ptr<Request> post_send(const void* data, int64_t bytes, int dst, const FrameKey& key);
  std::unique_ptr<Request> post_recv(void* data, int64_t bytes, int src, const FrameKey& key);
  void send_control(int dst, uint64_t context, const Control& message);
  /// `src` of the result is the rank among all processes.
  std::optional<Control> poll_control(uint64_t context);

  /// Moves what can be moved now. A lost connection is kept for whoever waits for its rank.
  void progress();
  /// Sleeps until something can be moved, at most `seconds`.
  void sleep(double seconds) const;

 private:
  struct Header {
    int64_t bytes;
    FrameKey key;
    int32_t control;  // a ControlKind, or kData
    int32_t blamed;
  };
  static constexpr int32_t kData = -1;

  struct Outgoing {
    Header header;
    const char* data;
    int64_t moved = 0;  // of header and data
    std::vector<char> owned;
    int64_t length() const { return static_cast<int64_t>(sizeof(Header)) + header.bytes; }
    bool is_done() const { return moved == length(); }
  };
  struct Incoming {
    Header header{};
    char* target = nullptr;  // null when nobody wants the bytes any more
    int64_t moved = 0;
    std::vector<char> owned;
    bool is_done() const { return moved == header.bytes; }
  };
  struct Posted {
    FrameKey key;
    char* data;
    int64_t bytes;
    std::shared_ptr<Incoming> message;  // once it has begun to arrive
  };
  struct Peer {
    Socket link;
    std::string lost;  // why nothing can be moved any more
    std::deque<std::shared_ptr<Outgoing>> outgoing;
    Header header{};
    int64_t header_moved = 0;
    std::shared_ptr<Incoming> arriving;
    std::list<std::shared_ptr<Incoming>> unexpected;
    std::list<std::shared_ptr<Posted>> posted;
  };
  class Sending;
  class Receiving;

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  void write(Peer& peer);
  void read(int src, Peer& peer);
  void begin_arrival(Peer& peer);
  void end_arrival(int src, Peer& peer);

  int rank_;
  std::vector<Peer> peers_;
  std::map<uint64_t, std::deque<Control>> controls_;
  std::vector<char> discarded_;
};

}  // namespace cuop::dist
