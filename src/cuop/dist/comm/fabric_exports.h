// What one peer is told of this process's GPU memory.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "cuop/backend/cuda/mapped_ranges.h"
#include "cuop/core/tensor.h"
#include "cuop/dist/comm/fabric_messages.h"

namespace cuop::dist::fabric {

/// Announces each piece of memory once, when a tensor in it is described first, and tells which
/// ones are gone.
class Exports {
 public:
  /// Of the memory of `device`, to whoever listens at `place`.
  Exports(Device device, const ChannelPlace& place);

  /// Whether other processes can map the memory that the tensor lies in.
  static bool can_describe(const Tensor& tensor);
  /// A tensor for which that holds. What the peer does not know of its memory is queued.
  TensorNote describe(const Tensor& tensor);
  /// Queues what is gone of what the peer was told.
  void retire();

  /// Sends of the queue what the peer takes at the moment. CommunicationError when it is not there,
  /// the driver's error when it exports nothing.
  void push(DescriptorChannel& channel);
  bool is_pushed() const { return batch_.empty() && queue_.empty(); }
  /// How many notes the peer will have when all are pushed.
  int64_t count() const { return sent_ + static_cast<int64_t>(batch_.size() + queue_.size()); }

 private:
  Device device_;
  ChannelPlace place_;
  std::set<uint64_t> announced_;
  uint64_t removals_ = 0;  ///< as of the last look for what is gone
  std::deque<PieceNote> queue_;
  int64_t sent_ = 0;
  /// Of the queue what is to be sent next.
  std::vector<PieceNote> batch_;
  std::vector<Descriptor> files_;
};

}  // namespace cuop::dist::fabric
