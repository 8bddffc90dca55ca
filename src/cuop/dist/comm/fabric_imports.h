// The GPU memory of one peer as far as it is mapped here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "cuop/backend/cuda/imported_range.h"
#include "cuop/core/tensor.h"
#include "cuop/dist/comm/fabric_messages.h"

namespace cuop::dist::fabric {

/// Nothing that the peer says is trusted: every number is checked before memory is touched.
class Imports {
 public:
  /// To be read by `device`; of a peer whose GPU has `peer_bytes`, more than which is not mapped.
  Imports(Device device, int64_t peer_bytes);

  /// Maps and unmaps what a message says. ExecutionError when it makes no sense, the driver's error
  /// when a file cannot be mapped.
  void take(const DescriptorChannel::Message& message);
  /// Notes that have come so far.
  int64_t count() const { return count_; }
  int64_t mapped_bytes() const { return mapped_bytes_; }

  /// The tensor that the peer describes, as one of this device. CommunicationError when it is not
  /// of the expected dtype and shape, or reaches memory that is not mapped.
  Tensor view(const TensorNote& note, DType dtype, const Shape& shape) const;

 private:
  using Range = backend::cuda::ImportedRange;

  void map(const PieceNote& note, const Descriptor& file);
  void unmap(uint64_t number);

  Device device_;
  int64_t peer_bytes_;
  std::map<uint64_t, std::shared_ptr<Range>> ranges_;
  std::map<uint64_t, PieceNote> pieces_;  ///< by number
  int64_t mapped_bytes_ = 0;
  int64_t count_ = 0;
};

}  // namespace cuop::dist::fabric
