// Collective calls on a GPU for communicators that move the host's memory alone.
#pragma once

#include <memory>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::memory {
class Workspace;
}

namespace cuop::dist {

/// A call of rank `rank` with its buffers in page-locked host memory. The host waits for both
/// copies.
class StagedCall : NonCopyable {
 public:
  /// Copies what the call reads from the device.
  StagedCall(const Collective& call, int rank);
  ~StagedCall();

  const Collective& on_host() const { return on_host_; }
  /// Copies what the call has written to the device.
  void deliver() const;

 private:
  using Blocks = std::vector<Block>;

  const Collective call_;
  const Blocks written_, written_here_, blocks_here_;  ///< on the device; in host memory
  std::unique_ptr<memory::Workspace> send_, recv_;
  Collective on_host_;
};

}  // namespace cuop::dist
