#include "cuop/dist/comm/packed_tensors.h"

#include <memory>

#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/workspace.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

PackedTensors::PackedTensors(const std::vector<Tensor>& like, Stream stream) {
  for (const Tensor& tensor : like) bytes_ += tensor.nbytes();
  if (stream.device.is_cpu()) {
    whole_ = empty({bytes_}, DType::kUInt8);
  } else {
    const auto owner = std::make_shared<backend::cuda::Workspace>(
        bytes_, stream, backend::cuda::pinned_memory(stream.device));
    whole_ = from_memory(owner->data(), contiguous_layout({bytes_}), DType::kUInt8, kCpu, owner);
  }
  int64_t offset = 0;
  for (const Tensor& tensor : like) {
    places_.push_back(from_memory(data() + offset, contiguous_layout(tensor.shape()),
                                  tensor.dtype(), kCpu, whole_.storage()));
    offset += tensor.nbytes();
  }
}

}  // namespace cuop::dist
