// One running operation of a P2pCommunicator, as its algorithms see it: post messages to and from
// other ranks, then wait for all of them.
#pragma once

#include <cstdint>

namespace cuop::dist {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Nothing is posted for no bytes: both sides know the length.
  virtual void post_send(const void* data, int64_t bytes, int dst) = 0;
  virtual void post_recv(void* data, int64_t bytes, int src) = 0;
  /// A message without content.
  virtual void post_signal(int dst) = 0;
  virtual void post_await(int src) = 0;
  /// Returns when all that was posted is complete; raises at the deadline or on a failure.
  virtual void wait_all() = 0;
};

}  // namespace cuop::dist
