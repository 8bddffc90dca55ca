// All the messages of one process to the others of a job, whatever communicator they belong to, and
// transports over some of these processes. Making such a transport moves nothing: a split needs no
// meeting beside the messages by which its ranks agreed on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

/// What messages are told apart by beside their source.
struct MessageKey {
  uint64_t context = 0;  ///< the communicator
  int64_t epoch = 0;
  int32_t tag = 0;
  bool operator==(const MessageKey&) const = default;
};

/// Ranks are those among all processes. One thread a communicator may call at the same time.
class Hub {
 public:
  virtual ~Hub() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view kind() const = 0;
  /// Equal for ranks that share a host.
  virtual int host_of(int rank) const = 0;

  virtual DeliveryPtr post_send(const void* data, int64_t bytes, int dst,
                                const MessageKey& key) = 0;
  virtual DeliveryPtr post_recv(void* data, int64_t bytes, int src, const MessageKey& key) = 0;
  /// See Transport, also for those below.
  virtual void send_control(int dst, uint64_t context, const Control& message) noexcept = 0;
  virtual std::optional<Control> poll_control(uint64_t context) = 0;
  virtual void flush() noexcept = 0;
  /// `seen` is the caller's, 0 at first: what it has seen of the hub, so that what another thread
  /// moves is not slept through.
  virtual void idle(int looks, uint64_t& seen) = 0;
  virtual void note_failure(bool is_failed) noexcept = 0;
  virtual bool is_lost(int rank) = 0;
  virtual void note_gone(int rank) noexcept = 0;
};

/// The transport of `ranks` of the hub, this process among them, numbered anew. `context` is the
/// same on all of them and no other communicator's.
std::shared_ptr<Transport> make_group_transport(std::shared_ptr<Hub> hub, std::vector<int> ranks,
                                                uint64_t context);

}  // namespace cuop::dist
