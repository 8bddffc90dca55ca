// Sums of products of tensors, written as equations (NumPy's einsum).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/einsum/path.h"

namespace cuop {

/// What an equation says of the operands: "ij,jk->ik" is a matrix product. The grammar is NumPy's:
/// spaces, "..." for dimensions that broadcast, repeated indices for diagonals, size 1 stretched
/// beside another size. The result has the promoted dtype of all operands, in which everything is
/// computed as by matmul and multiply: 16-bit floats round after each pair, integers wrap, bool is
/// "or" of "and". Pairs of operands are multiplied in the order that `options` gives or has found;
/// each is a product of matrices, read where it lies unless that needs a copy, or element by
/// element where nothing is summed.
///
/// Of one operand, of which nothing is summed, the result is a view.
///
/// With `options.memory_limit` the tensors that the call makes, its result included (`out` is not),
/// have no more bytes at a time: where they would, the contraction is run slice by slice
/// (slicing.h) and partial sums are added up, those of 16-bit floats in float32.
///
/// Errors: ExecutionError for a text that is no equation and for a path that does not fit,
/// ShapeError for operands that do not fit the equation, MemoryError where no order keeps to the
/// limit, with the least one that can be kept to, DeviceError.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands,
              const PathOptions& options = {}, const Tensor* out = nullptr);

/// The order in which such a call multiplies, and what it costs.
struct EinsumPath {
  std::string equation;
  LinearPath path;  ///< of pairs; (0) for one operand
  PathCosts costs;
  std::vector<std::string> steps;  ///< each as an equation: "jk,ij->ik"
  DType dtype = DType::kFloat32;
  /// Of tensors that the call makes at a time, of operands of that dtype that are row-major.
  int64_t peak_bytes = 0;
  int64_t slices = 1;  ///< runs of all steps
  /// The indices that are cut for that, and into how many pieces.
  std::vector<std::pair<std::string, int64_t>> sliced;
  double added_flops = 0;  ///< by slices, beyond costs.flops

  double speedup() const { return costs.flops > 0 ? costs.naive_flops / costs.flops : 1.0; }
  /// A table of several lines.
  std::string to_string() const;
};
/// Errors as of `einsum`.
EinsumPath einsum_path(std::string_view equation, std::span<const Shape> shapes,
                       const PathOptions& options = {}, DType dtype = DType::kFloat32);

}  // namespace cuop
