// What a network must offer so that the whole Communicator can be built on it (p2p_communicator.h):
// messages that are posted and looked after, never waited for, and short control messages aside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/dist/comm/split.h"

namespace cuop::dist {

/// A message under way. Destroying it gives it up: after that the buffer is not touched any more,
/// whatever the network still holds.
class Delivery {
 public:
  virtual ~Delivery() = default;
  /// Moves what can be moved now; true when complete. CommunicationError naming a rank when the
  /// peer is lost or has ended; naming none when a receive's length is not the message's ("the
  /// message has 12 bytes").
  virtual bool test() = 0;
  /// Grows while a long message makes progress.
  virtual int64_t moved() const = 0;
};
using DeliveryPtr = std::unique_ptr<Delivery>;

/// The other side of a message and what it is told apart by: messages match when epoch and tag are
/// equal, and messages that match arrive in order. Tags lie in [0, kTagLimit).
struct Envelope {
  int peer = 0;
  int64_t epoch = 0;
  int tag = 0;
};

/// User tags are below kUserTagLimit, those of the collectives above.
inline constexpr int kUserTagLimit = 1 << 16;
inline constexpr int kTagLimit = 1 << 17;

enum class ControlKind : int32_t {
  kAbort,
  kMeet,
  kPing,
  kPong,
  kRefusal,
  kRefusedMessage,
  kHere,         // in a shrink
  kSurvivors,    // as one rank of a shrink sees it
  kPassedOn,     // an abort, by a rank that has been told of it
  kMeetGivenUp,  // that was told by kMeet
  kHereGivenUp,  // that was told by kHere
};

/// A short message that is seen by every wait, also by those of communicators split from this one.
/// It is never behind data that somebody has yet to take. Texts longer than kControlText are cut.
struct Control {
  int src = 0;
  ControlKind kind = ControlKind::kAbort;
  int64_t epoch = 0;  ///< of a ping and its answers the number of the enquiry; of a shrink its own
  int32_t blamed = -1;  ///< the rank among all that an abort blames or a pong waits for; the number
                        ///< of a refused call; who has come elsewhere, for which a meeting is given
                        ///< up: to what the text says
  std::string text;
};
inline constexpr size_t kControlText = 2000;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether the rank lives on the same host as this one.
  virtual bool is_near(int rank) const = 0;
  virtual std::string_view kind() const = 0;
  /// The same on all ranks of this transport, and no other's of these processes.
  virtual uint64_t context() const = 0;

  /// To and from other ranks only.
  virtual DeliveryPtr post_send(const void* data, int64_t bytes, const Envelope& envelope) = 0;
  virtual DeliveryPtr post_recv(void* data, int64_t bytes, const Envelope& envelope) = 0;

  /// Never fails and never waits: a peer that cannot be reached is noticed elsewhere.
  virtual void send_control(int dst, const Control& message) noexcept = 0;
  virtual std::optional<Control> poll_control() = 0;
  /// Sees to it that control messages that were sent leave this process now, also when it does
  /// nothing with the transport afterwards; for a moment, then gives up.
  virtual void flush() noexcept {}

  /// Called between two fruitless looks, the `looks`-th in a row: spins, yields or sleeps a little.
  virtual void idle(int looks) = 0;

  /// Of all ranks of this transport, which have agreed on their groups; null for an empty one.
  /// Sends nothing and waits for nobody. `color` is non-negative and the same within a group.
  virtual std::shared_ptr<Transport> split(int color, const SplitGroup& group) = 0;
  /// The same for the ranks that are left, which have agreed on who they are.
  virtual std::shared_ptr<Transport> shrink(const SplitGroup& group) = 0;

  /// The communicator failed or recovered, which decides how the process may end.
  virtual void note_failure(bool is_failed) noexcept = 0;
  /// Whether the connection to the rank has come to its end.
  virtual bool is_lost(int rank) = 0;
  /// The others go on without this rank: nothing is sent to it any more, and it is not waited for
  /// at the end of the process.
  virtual void note_gone(int rank) noexcept = 0;
};

}  // namespace cuop::dist
