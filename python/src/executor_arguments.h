// What the bindings of cuop.executor share.
#pragma once

#include <vector>

#include "binders.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::python {

/// Plans on paper, a part of bind_executor.
void bind_executor_plans(Module& m);

/// ShapeError for what no memory holds, whose bytes could not be added up.
inline void check_bytes(const executor::Header& header) {
  constexpr int64_t kMost = int64_t{1} << 58;
  if (element_count(header.shape) <= kMost / itemsize(header.dtype)) return;
  throw ShapeError(
      cat("plan: an array of ", header, " is more than any memory; allowed are ", kMost, " bytes"));
}

/// Inputs that need not be there. ExecutionError unless there are as many dtypes as shapes.
inline std::vector<executor::Header> headers_of(const nb::sequence& shapes,
                                                const nb::sequence& dtypes) {
  if (nb::len(shapes) != nb::len(dtypes)) {
    throw ExecutionError(cat("plan: ", nb::len(shapes), " shapes and ", nb::len(dtypes),
                             " dtypes were given; each array needs one of both"));
  }
  std::vector<executor::Header> headers;
  for (size_t i = 0; i < nb::len(shapes); ++i) {
    headers.push_back(
        {named_argument<Shape>(shapes[i], "shapes"), named_argument<DType>(dtypes[i], "dtypes")});
    check_bytes(headers.back());
  }
  return headers;
}

}  // namespace cuop::python
