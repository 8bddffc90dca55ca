// Internal: what the passes over one long line are made of (line_steps.h, chirp_line.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuop/executor/operations.h"

namespace cuop::executor {

/// A pass over the line as a matrix.
struct LineStep {
  std::string text;
  TileOperation operation;
  std::vector<Header> inputs;
};

/// What is made of a matrix [n1, n2], n = n1 n2, of which one axis is transformed, times
/// exp(-+2 pi i row column / n).
TileOperation with_twiddles(TileOperation made, int64_t n, bool is_inverse);

/// The first n elements of the line, with zeros where it has fewer, on the host then.
Tensor of_length(const Tensor& x, int64_t n);

}  // namespace cuop::executor
