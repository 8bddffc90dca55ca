// Internal: calls of einsum that keep to a limit of memory. Pure.
#pragma once

#include <optional>
#include <vector>

#include "cuop/core/contraction.h"
#include "cuop/core/device.h"
#include "cuop/core/dtype.h"
#include "cuop/core/layout.h"
#include "cuop/core/slicing.h"

namespace cuop::pairwise {

/// What of a call says how much memory it takes.
struct CallLayouts {
  std::vector<Layout> operands;  ///< of the contraction's inputs
  std::vector<DType> dtypes;     ///< of each
  DType dtype = DType::kFloat32;
  Device device = kCpu;
  std::optional<Layout> out = {};  ///< where the caller gave it
};

struct MemoryPlan {
  std::vector<ContractionStep> steps;
  Slicing slicing;
  int64_t peak = 0;  ///< bytes of tensors of the call's own at a time, its result included
  double flops = 0;
};

/// Of the orders, each in as few slices as the limit asks for, the one of fewest flops. MemoryError
/// that names the least limit for which there is one.
MemoryPlan fit_memory(const Contraction& contraction,
                      const std::vector<std::vector<ContractionStep>>& orders,
                      const CallLayouts& layouts, std::optional<int64_t> limit);

/// What an operand, or the output, has of a slice.
Layout sliced_layout(const Layout& layout, const Indices& indices,
                     const std::vector<Interval>& intervals);

}  // namespace cuop::pairwise
