// Parts of float32 operands that are kept from one product to the next: of tiles in a row one
// operand is often the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "cuop/core/noncopyable.h"
#include "cuop/core/storage.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop {

/// What is kept of the last product by parts on the thread's stream. Operands may not be written to
/// meanwhile. No more is kept than that product took, and nothing once another one is not made by
/// parts.
class KeptParts : NonCopyable {
 public:
  /// Makes it this thread's for the time of the scope's life.
  class Scope : NonCopyable {
   public:
    explicit Scope(KeptParts& parts);
    ~Scope();

   private:
    KeptParts* before_;
  };
  /// This thread's; null without a scope.
  static KeptParts* current();

  /// The parts of both operands: those that are kept, and the others in new memory, where they are
  /// filled in. MemoryError, and nothing is kept, where there is no room.
  std::array<kernels::SplitStack, 2> of(const Tensor& a, const kernels::MatrixStack& a_lines,
                                        const Tensor& b, const kernels::MatrixStack& b_lines);
  void forget() { sides_ = {}; }
  /// Operands that were not split again.
  int64_t reused() const { return reused_; }

 private:
  struct Side {
    std::weak_ptr<Storage> storage;
    kernels::SplitStack split;
    bool has(const Tensor& operand, const kernels::MatrixStack& lines) const;
  };
  std::array<Side, 2> sides_;
  int64_t reused_ = 0;
};

}  // namespace cuop
