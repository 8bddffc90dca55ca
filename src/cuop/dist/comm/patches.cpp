#include "cuop/dist/comm/patches.h"

#include <algorithm>
#include <memory>

#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/fabric_exports.h"
#include "cuop/memory/workspace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

std::vector<Tensor> tensors_of(std::span<const Patch> patches, int rank) {
  std::vector<Tensor> tensors;
  for (const Patch& patch : patches) {
    if (patch.peer == rank) tensors.push_back(patch.elements);
  }
  return tensors;
}

std::string misfit(const std::vector<Tensor>& expected, const std::vector<Tensor>& sent, int src) {
  const auto differ = [src](const auto& wanted, const auto& given) {
    return cat("expects ", wanted, " from rank ", src, ", which sends ", given);
  };
  if (sent.size() != expected.size()) return differ(cat(expected.size(), " tensors"), sent.size());
  const auto text = [](const Tensor& x) { return cat(x.shape(), " of ", x.dtype()); };
  for (size_t i = 0; i < sent.size(); ++i) {
    const bool is_same = sent[i].shape() == expected[i].shape();
    if (!is_same || sent[i].dtype() != expected[i].dtype()) {
      return differ(text(expected[i]), text(sent[i]));
    }
  }
  return "";
}

bool are_mapped(std::span<const Patch> patches) {
  return std::ranges::all_of(patches, [](const Patch& patch) {
    const Tensor& x = patch.elements;
    return x.size() == 0 || (!x.device().is_cpu() && fabric::Exports::can_describe(x));
  });
}

void copy_own_patches(Exchange& x, const Collective& call) {
  const auto from = tensors_of(call.sends, x.rank()), to = tensors_of(call.receives, x.rank());
  const std::string wrong = misfit(to, from, x.rank());
  if (!wrong.empty()) x.fail(x.rank(), wrong);
  for (size_t i = 0; i < to.size(); ++i) copy_into(to[i], from[i]);
}

PackedTensors::PackedTensors(const std::vector<Tensor>& like, Stream stream) {
  for (const Tensor& tensor : like) bytes_ += tensor.nbytes();
  if (stream.device.is_cpu()) {
    whole_ = empty({bytes_}, DType::kUInt8);
  } else {
    const auto owner =
        std::make_shared<memory::Workspace>(bytes_, stream, backend::locked_memory(stream.device));
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
