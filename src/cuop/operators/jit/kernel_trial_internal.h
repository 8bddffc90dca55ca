// Copies of a kernel's arguments to try configurations on.
#pragma once

#include <span>
#include <vector>

#include "cuop/jit/kernel_signature.h"
#include "cuop/operators/jit/user_kernel_options.h"

namespace cuop {

/// Enough sets of copies that no run finds its data in the L2 cache. The originals are only read.
class KernelTrial {
 public:
  /// `l2_bytes` of the device.
  KernelTrial(const std::vector<jit::KernelParameter>& parameters,
              std::span<const KernelArgument> arguments, int64_t l2_bytes);

  /// False when tensors share memory without being the same: copies would not.
  static bool is_possible(std::span<const KernelArgument> arguments);

  int count() const { return static_cast<int>(sets_.size()); }
  const std::vector<KernelArgument>& arguments(int64_t turn) const { return sets_[place(turn)]; }
  /// Gives what the kernel writes its first values again, in the sets of these turns.
  void restore(int64_t first_turn, int count);
  /// What the kernel has written in the set of turn 0.
  std::vector<Tensor> results() const;

 private:
  size_t place(int64_t turn) const { return static_cast<size_t>(turn) % sets_.size(); }

  std::vector<KernelArgument> originals_;
  std::vector<size_t> written_;  ///< places of the arguments that the kernel writes
  std::vector<std::vector<KernelArgument>> sets_;
};

}  // namespace cuop
