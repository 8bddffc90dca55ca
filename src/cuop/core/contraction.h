// Sums of products of tensors with named indices, as plain values: the problem, and pairwise steps
// that solve it. An index is a number; what a tensor's dimensions are called is a list of them.
//
// Worked example: ij,jk->ik with i, j, k = 0, 1, 2 has the inputs {0, 1} and {1, 2}, the output
// {0, 2} and one step, which makes {0, 2} of the tensors 0 and 1.
#pragma once

#include <vector>

#include "cuop/core/dims.h"

namespace cuop {

using Indices = std::vector<int>;

bool has_index(const Indices& indices, int index);
/// Whether both have the same indices, in any order.
bool same_indices(const Indices& a, const Indices& b);

/// Makes a tensor of one or two: the product, summed over the indices that the result lacks.
struct ContractionStep {
  int left = 0;         ///< a tensor: an input, or behind these the result of an earlier step
  int right = -1;       ///< none: the sum of `left` alone
  Indices result = {};  ///< what the dimensions of what is made are called

  bool is_pair() const { return right >= 0; }
};

struct Contraction {
  std::vector<Indices> inputs;  ///< no index twice in one of them
  Indices output;
  std::vector<int64_t> sizes;  ///< of each index

  Shape shape(const Indices& indices) const;
  /// The indices of each input, then those of what each step makes.
  std::vector<Indices> tensors(const std::vector<ContractionStep>& steps) const;
};

/// The indices of what a step takes, each once; `tensors` as by Contraction::tensors.
Indices step_indices(const ContractionStep& step, const std::vector<Indices>& tensors);
/// Flops of a step that takes these indices, of which so many elements are worked on: one for each,
/// twice where a pair is summed, none where one tensor is only seen otherwise.
double step_flops(const ContractionStep& step, const Indices& all, double elements);

/// What the indices of a pair are to its product.
struct PairIndices {
  Indices batch;   ///< in both and in the result
  Indices left;    ///< in the left one and in the result
  Indices summed;  ///< in both, not in the result
  Indices right;   ///< in the right one and in the result

  /// Whether matrices are multiplied: not numbers alone, nor vectors with vectors.
  bool is_matrix_product() const { return !summed.empty() && !(left.empty() && right.empty()); }
};
/// In the order in which the left one, then the right one has them. Each index that the result
/// lacks must be in both.
PairIndices pair_indices(const Indices& left, const Indices& right, const Indices& result);
/// The same of a step's operands; nothing where it takes one tensor.
PairIndices pair_of(const ContractionStep& step, const std::vector<Indices>& tensors);

/// How a pair of row-major tensors is computed.
struct PairForm {
  Indices batch = {};         ///< of each element of these a product of matrices is made
  bool copies_left = false;   ///< to lie as matrices
  bool copies_right = false;  ///< likewise
  bool copies_result = false;
};

}  // namespace cuop
