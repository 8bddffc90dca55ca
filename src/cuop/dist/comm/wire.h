// What a message library must offer to carry a PacketHub: it is given no memory but its own, so
// that nobody's buffer is read or written after it was given up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace cuop::dist {

/// Memory that is not set to anything.
struct Buffer {
  Buffer() = default;
  explicit Buffer(int64_t size)
      : data(std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size))), bytes(size) {}
  std::unique_ptr<char[]> data;
  int64_t bytes = 0;
};

/// Bytes under way between two ranks, in memory of the wire. Destroying one that is not complete
/// leaves it to the wire, which keeps the memory until the library is done with it; a receive that
/// nothing has been sent for is withdrawn.
class Parcel {
 public:
  virtual ~Parcel() = default;
  /// True when complete.
  virtual bool test() = 0;
  virtual const char* data() const = 0;
  /// Of a complete receive, what came; else what was given.
  virtual int64_t bytes() const = 0;
};

/// Controls may overtake data packets; otherwise what one rank sends to another stays in order.
enum class Channel : int { kControl, kData };

struct Packet {
  int src;
  Buffer content;
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Equal for ranks that share a host.
  virtual int host_of(int rank) const = 0;

  /// At most kControlPacket or kDataPacket bytes.
  virtual std::unique_ptr<Parcel> send_packet(int dst, Channel channel, Buffer content) = 0;
  virtual std::optional<Packet> poll_packet(Channel channel) = 0;
  /// A piece of a long message; the receiver asks for it with the same tag, 0 to 32000.
  virtual std::unique_ptr<Parcel> send_chunk(int dst, int tag, Buffer content) = 0;
  virtual std::unique_ptr<Parcel> receive_chunk(int src, int tag, int64_t bytes) = 0;
  virtual void idle(int looks) = 0;
};

inline constexpr int64_t kControlPacket = 2048;
inline constexpr int64_t kDataPacket = 32 * 1024;
inline constexpr int kChunkTags = 32000;

}  // namespace cuop::dist
