// Copies of operands to try several ways of one computation on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/tune/tuner.h"

namespace cuop {

/// Enough sets of copies that no run finds its data in the device's L2 cache. The originals are
/// only read.
class Trial {
 public:
  struct Operand {
    Tensor original;
    bool is_written = false;
    int64_t alignment = 256;  ///< in bytes: the copies' addresses are multiples of it, of no more
    std::string name = {};    ///< of what is written, for differences
  };
  /// False when tensors share memory without being the same view: copies would not.
  static bool is_possible(const std::vector<Tensor>& tensors);

  /// Operands that are the same view share their copies.
  Trial(std::vector<Operand> operands, int64_t l2_bytes);

  int count() const { return static_cast<int>(sets_.size()); }
  /// The copies that the run of this turn has, in the order of the operands.
  const std::vector<Tensor>& set(int64_t turn) const {
    return sets_[static_cast<size_t>(turn) % sets_.size()];
  }
  /// Gives what is written its first values again, in the sets of these turns.
  void restore(int64_t first_turn, int turns);

  /// Computes by the candidate on the copies.
  using Run = std::function<void(size_t candidate, const std::vector<Tensor>& set)>;
  /// The fastest of the candidates, of which the first says what the results must be. All operands
  /// lie on `device`.
  tune::SearchResult search(const std::vector<std::string>& names, Device device, const Run& run,
                            const tune::SearchLimits& limits);

 private:
  std::string difference(const std::vector<Tensor>& expected) const;

  std::vector<Operand> operands_;
  std::vector<size_t> written_;  ///< places of the operands that are
  std::vector<std::vector<Tensor>> sets_;
};

/// The elements from `data` on, which somebody else keeps, as a tensor of one axis.
Tensor borrowed(const void* data, int64_t elements, DType dtype, Device device);

}  // namespace cuop
