// Copies of operands to try a library's algorithms on.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop {

/// Enough copies of some stretches of memory that no run finds its data in the L2 cache.
class TrialBuffers {
 public:
  struct Stretch {
    const void* data = nullptr;
    int64_t elements = 0;
    DType dtype = DType::kFloat32;
    int64_t alignment = 256;  ///< the copies' addresses are multiples of this and of no more
  };
  /// The stretches lie on `device`, whose L2 cache has `l2_bytes`. Copied on the current stream.
  TrialBuffers(std::vector<Stretch> stretches, Device device, int64_t l2_bytes);

  int count() const { return static_cast<int>(sets_.size()); }
  /// The copy of a stretch that the run of this turn has.
  const Tensor& copy(int64_t turn, size_t stretch) const {
    return sets_[static_cast<size_t>(turn) % sets_.size()][stretch];
  }
  /// Copies the stretch anew for these turns.
  void restore(size_t stretch, int64_t first_turn, int turns);

 private:
  void fill(const Stretch& stretch, const Tensor& copy) const;

  std::vector<Stretch> stretches_;
  Device device_;
  std::vector<std::vector<Tensor>> sets_;
};

}  // namespace cuop
