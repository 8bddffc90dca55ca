// Products of many tensors over ranks. The order of pairs and how each pair is split are planned
// together (plan/einsum_plan.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/einsum/path.h"

namespace cuop::dist {

/// What the equation says of the operands: grammar, dtype and errors as of cuop::einsum. Where the
/// order is left to the search, several are planned, and the one taken that is predicted to be done
/// first. Strategies: "split", and "root" and "mixed" where all operands lie on one rank. The
/// result lies as its last pair makes it unless `options.output` says otherwise.
DistTensor einsum(std::string_view equation, const std::vector<DistTensor>& operands,
                  const PathOptions& path = {}, const CallOptions& options = {});
/// The same on rank 0 of tensors given there: as many as the equation has terms, undefined
/// elsewhere.
Tensor einsum_from_root(const CommunicatorPtr& comm, std::string_view equation,
                        const std::vector<Tensor>& operands, const PathOptions& path = {},
                        const CallOptions& options = {});

/// The axes of both operands that are summed in pairs: lists, or the last and first `count`.
struct TensordotAxes {
  int64_t count = 2;
  std::vector<int64_t> of_a = {};  ///< instead of the count, when `are_listed`
  std::vector<int64_t> of_b = {};
  bool are_listed = false;
};

/// As an equation: "ABC,BCD->AD" for two tensors and the pairs of their axes.
std::string tensordot_equation(const std::vector<Shape>& shapes, const TensordotAxes& axes);
/// The axes in words.
std::string tensordot_text(const TensordotAxes& axes);

/// cuop::tensordot, planned as an einsum.
DistTensor tensordot(const DistTensor& a, const DistTensor& b, const TensordotAxes& axes,
                     const CallOptions& options = {});
Tensor tensordot_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                           const TensordotAxes& axes, const CallOptions& options = {});

}  // namespace cuop::dist
