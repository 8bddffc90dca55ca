// What a message library must offer to carry a PacketHub: it is given no memory but its own, so
// that nobody's buffer is read or written after it was given up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cuop::dist {

/// Memory that is not set to anything.
struct Buffer {
  Buffer() = default;
  explicit Buffer(int64_t size)
      : data(std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size))), bytes(size) {}
  std::unique_ptr<char[]> data;
  int64_t bytes = 0;
};

/// Keeps some buffers of the length that was asked for last, so that a long message does not ask
/// the system for memory with each chunk.
class Buffers {
 public:
  Buffer take(int64_t bytes) {
    if (spare_.empty() || spare_.back().bytes != bytes) {
      spare_.clear();
      return Buffer(bytes);
    }
    Buffer buffer = std::move(spare_.back());
    spare_.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer) {
    constexpr size_t kMost = 16;
    if (!spare_.empty() && spare_.back().bytes != buffer.bytes) return;
    if (spare_.size() < kMost) spare_.push_back(std::move(buffer));
  }

 private:
  std::vector<Buffer> spare_;
};

/// Bytes under way between two ranks, in memory of the wire. Destroying one that is not complete
/// leaves it to the wire, which keeps the memory until the library is done with it; a receive that
/// nothing has been sent for is withdrawn.
class Parcel {
 public:
  virtual ~Parcel() = default;
  /// True when complete.
  virtual bool test() = 0;
  /// Of a complete one: what came, or what was given.
  virtual Buffer take() = 0;
};

/// Controls may overtake data packets; otherwise what one rank sends to another stays in order.
enum class Channel : int { kControl, kData };

struct Packet {
  int src;
  Buffer content;
};

class PacketWire {
 public:
  virtual ~PacketWire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Equal for ranks that share a host.
  virtual int host_of(int rank) const = 0;

  /// At most kControlPacket or kDataPacket bytes.
  virtual std::unique_ptr<Parcel> send_packet(int dst, Channel channel, Buffer content) = 0;
  virtual std::optional<Packet> poll_packet(Channel channel) = 0;
  /// A piece of a long message; the receiver asks for it with the same tag, 0 to 32000.
  virtual std::unique_ptr<Parcel> send_chunk(int dst, int tag, Buffer content) = 0;
  virtual std::unique_ptr<Parcel> receive_chunk(int src, int tag, Buffer space) = 0;
  virtual void idle(int looks) = 0;
};

inline constexpr int64_t kControlPacket = 2048;
inline constexpr int64_t kDataPacket = 32 * 1024;
inline constexpr int kChunkTags = 32000;

}  // namespace cuop::dist
