// Bytes of the host in which tensors stand one after the other: page-locked for a GPU's stream.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/stream.h"
#include "cuop/core/tensor.h"

namespace cuop::dist {

class PackedTensors {
 public:
  /// Room for tensors of these shapes and dtypes.
  PackedTensors(const std::vector<Tensor>& like, Stream stream);

  char* data() const { return static_cast<char*>(whole_.data()); }
  int64_t bytes() const { return bytes_; }
  /// Of the tensors, in their order.
  const std::vector<Tensor>& places() const { return places_; }

 private:
  int64_t bytes_ = 0;
  Tensor whole_;
  std::vector<Tensor> places_;
};

}  // namespace cuop::dist
