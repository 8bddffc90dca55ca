// Copies between the GPUs of several processes, on any hosts, by NCCL's sends and receives.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// By which the ranks of a group find each other; sent as it is.
struct NcclId {
  std::array<char, 128> bytes = {};
};

/// 22809 for NCCL 2.28.9; 0 where there is none, or one before 2.14, whose calls wait for the
/// others.
int64_t nccl_version();

/// One rank of the group makes it. ExecutionError with what NCCL says.
NcclId new_nccl_id();

struct NcclState;  // the library's

/// One rank's end of a group, each on another GPU. One thread at a time uses it, and no call waits.
class NcclGroup : NonCopyable {
 public:
  /// Of a copy: the other rank of the group, and memory of this one's GPU.
  struct Piece {
    int peer = 0;
    void* data = nullptr;
    int64_t bytes = 0;
  };

  /// Begins to meet the others.
  NcclGroup(Device device, int rank, int size, const NcclId& id);
  /// Gives up what is under way, on the GPU too.
  ~NcclGroup();

  /// Whether the call before is through: all have met, or the stream has the copies. The next one
  /// may be made only then. ExecutionError with what NCCL says.
  bool is_ready() const;
  /// The copies are one piece of work of the stream, which ends when they are made. Between two
  /// ranks the first that is sent meets the first that is received, of as many bytes, and so on.
  void copy(std::span<const Piece> sends, std::span<const Piece> receives, Stream stream);

 private:
  Device device_;
  NcclState* state_ = nullptr;
};

}  // namespace cuop::backend::cuda
