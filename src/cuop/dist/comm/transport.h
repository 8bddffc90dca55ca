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

/// A message under way. Destroying it gives it up: after that the buffer is not touched any more.
class Request {
 public:
  virtual ~Request() = default;
  /// Moves what can be moved now; true when complete. CommunicationError when the peer is lost or a
  /// receive's length is not the message's ("the message has 12 bytes").
  virtual bool test() = 0;
  /// Grows while a long message makes progress.
  virtual int64_t moved() const = 0;
};

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

enum class ControlKind : int32_t { kAbort, kMeet, kPing, kPong };

/// A short message that is seen by every wait. Texts longer than kControlText are cut.
struct Control {
  int src = 0;
  ControlKind kind = ControlKind::kAbort;
  int64_t epoch = 0;
  int32_t blamed = -1;  ///< the rank that an abort blames
  std::string text;
};
inline constexpr size_t kControlText = 2000;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_size() const = 0;
  virtual std::string_view kind() const = 0;

  /// To and from other ranks only.
  virtual std::unique_ptr<Request> post_send(const void* data, int64_t bytes,
                                             const Envelope& envelope) = 0;
  virtual std::unique_ptr<Request> post_recv(void* data, int64_t bytes,
                                             const Envelope& envelope) = 0;

  /// Never fails and never waits: a peer that cannot be reached is noticed elsewhere.
  virtual void send_control(int dst, const Control& message) noexcept = 0;
  virtual std::optional<Control> poll_control() = 0;

  /// Called between two fruitless looks, the `looks`-th in a row: spins, yields or sleeps a little.
  virtual void idle(int looks) = 0;

  /// Collective over all ranks of this transport; null for those with an empty group. `color` is
  /// non-negative and the same within a group.
  virtual std::shared_ptr<Transport> split(int color, const SplitGroup& group) = 0;

  /// The communicator failed or recovered, which decides how the process may end.
  virtual void note_failure(bool is_failed) noexcept = 0;
};

}  // namespace cuop::dist
