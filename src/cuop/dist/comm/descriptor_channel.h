// Open files handed from process to process of one host: datagrams of a Unix socket. Nothing here
// waits. Who may send is settled elsewhere: each sender is given a token of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuop/core/descriptor.h"

namespace cuop::dist {

using ChannelToken = std::array<uint64_t, 2>;
/// Numbers that nobody guesses.
ChannelToken new_channel_token();

/// Where a channel is found on its host, and by what one sender is let in. Sent as it is.
struct ChannelPlace {
  ChannelToken name = {};
  ChannelToken token = {};
};

class DescriptorChannel {
 public:
  static constexpr size_t kMostBytes = 8192;
  static constexpr size_t kMostFiles = 64;  ///< of one message; the system takes some 250

  /// `senders` may send, each known by its token here. CommunicationError when the system gives no
  /// socket.
  explicit DescriptorChannel(int senders);

  /// For the sender of this number.
  ChannelPlace place_for(int sender) const;

  /// One message of kMostBytes and kMostFiles at most. False when the receiver has as many as the
  /// system keeps: later again. CommunicationError when nobody is at that place.
  bool send(const ChannelPlace& to, std::span<const std::byte> bytes,
            std::span<const Descriptor> files);

  struct Message {
    int sender = -1;
    std::vector<std::byte> bytes;
    std::vector<Descriptor> files;
  };
  /// The next message, nothing when none is there. What does not come from a process of this user
  /// that knows a sender's token is dropped and its files are closed. CommunicationError when files
  /// of a sender were lost because this process may not open more.
  std::optional<Message> receive();
  /// Messages that were dropped.
  int64_t dropped() const { return dropped_; }

 private:
  Descriptor socket_;
  ChannelToken name_;
  std::vector<ChannelToken> tokens_;
  int64_t dropped_ = 0;
};

}  // namespace cuop::dist
