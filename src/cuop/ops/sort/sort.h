// Sorting along an axis and distinct elements; bool, integers and real floats. NaN counts as larger
// than every number, -0 and 0 as equal. Equal elements keep their order. DTypeError for complex.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// The elements in rising (or falling) order along `axis`.
Tensor sort(const Tensor& x, int64_t axis = -1, bool is_descending = false,
            const Tensor* out = nullptr);
/// The int64 positions along `axis` that sort x.
Tensor argsort(const Tensor& x, int64_t axis = -1, bool is_descending = false,
               const Tensor* out = nullptr);

struct Unique {
  Tensor values;   ///< distinct elements of the flattened x, rising; one NaN at most
  Tensor index;    ///< int64 position of each one's first occurrence in the flattened x
  Tensor inverse;  ///< of x's shape: x = values[inverse]
  Tensor counts;   ///< int64, how often each occurs
};
/// What is wanted of them beside the values; the others are left undefined.
struct UniqueParts {
  bool index = true;
  bool inverse = true;
  bool counts = true;
};
Unique unique(const Tensor& x, const UniqueParts& wanted = {});

}  // namespace cuop
