// Running sums with the options of the array standard.
#pragma once

#include <cstdint>
#include <optional>

#include "cuop/core/tensor.h"

namespace cuop {

/// How a running sum is asked for beside its axis.
struct CumulativeOptions {
  std::optional<DType> dtype = {};  ///< x is converted to it first, and the result has it
  bool includes_initial = false;    ///< begin with 0, and be longer by 1
};

/// `cumsum` along `axis`, which only a tensor of 1 dimension may leave out. Raises ShapeError.
Tensor cumulative_sum(const Tensor& x, std::optional<int64_t> axis = {},
                      const CumulativeOptions& options = {});

}  // namespace cuop
