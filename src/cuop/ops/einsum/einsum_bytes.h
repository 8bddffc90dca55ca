// Sums of products within a plan: what they take of memory, and with results that round nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/einsum/path.h"
#include "cuop/ops/work_figures.h"

namespace cuop {

/// einsum of 16-bit floats with the result in float32: a pair of matrices is multiplied as they
/// are, and nothing is rounded on the way; of other dtypes as einsum. Not within a memory limit.
Tensor einsum_widened(std::string_view equation, std::span<const Tensor> operands,
                      const PathOptions& options = {});

/// Operands that lie row-major on a device.
struct EinsumOperands {
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  Device device = kCpu;
};
/// Bytes that `einsum`, or `einsum_widened`, takes of the device beside operands and result.
int64_t einsum_bytes(std::string_view equation, const EinsumOperands& operands,
                     const PathOptions& options, bool is_widened, const WorkFigures& figures);

}  // namespace cuop
