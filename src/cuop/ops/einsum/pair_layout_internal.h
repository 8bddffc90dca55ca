// Internal: how a pair of tensors is seen as matrices, with the fewest elements copied. Pure.
#pragma once

#include <optional>
#include <vector>

#include "cuop/core/contraction.h"
#include "cuop/core/device.h"
#include "cuop/core/layout.h"

namespace cuop::pairwise {

/// A layout whose dimensions are called so.
struct Named {
  Layout layout;
  Indices indices;
};

/// All of them, one after the other.
Indices joined(const Indices& a, const Indices& b, const Indices& c);

/// Row-major in this order of the indices, as seen under `indices`, which are the same.
Layout layout_in(const Indices& order, const Indices& indices, const Shape& shape);

/// [batch..., rows, columns] with the indices of each of the last two merged in their order, and
/// size 1 for those of the batch that x lacks; nothing where the strides do not allow that.
std::optional<Layout> as_matrices(const Named& x, const Indices& batch, const Indices& rows,
                                  const Indices& columns);

/// Elements that a product of such matrices copies at most to read x, or to write it: none where
/// they are surely taken as they lie.
double most_copied(const Named& x, const Indices& batch, const Indices& rows,
                   const Indices& columns);

/// Those of `indices` in the order in which they lie in x, the slowest first.
Indices by_stride(const Named& x, const Indices& indices);

/// A pair as a product of matrices, [batch, left, summed] @ [batch, summed, right], the indices of
/// each group in this order. Some that only one of them has may be in the batch, where that saves
/// more copying than it needs products.
struct PairOrder {
  PairIndices indices;
  double copied = 0;  ///< elements of operands and result that cannot stay where they are
};
/// The best order on the device. `made` is where the result shall lie, if that is given.
PairOrder order_of(const Named& left, const Named& right, const Indices& result,
                   const std::optional<Layout>& made, Device device = kCpu);

/// Of each step that multiplies row-major tensors and makes one.
std::vector<PairForm> row_major_forms(const Contraction& contraction,
                                      const std::vector<ContractionStep>& steps);

/// Who takes a result: its other operand, and what it makes, where that is known.
struct Consumer {
  std::optional<Named> other;  ///< none: it sums, or takes nothing
  Indices result;
  std::optional<Layout> made;
};
/// Where the result of a pair is made so that pair and consumer copy least: in an order of batch,
/// left and right.
Layout best_layout(const Named& left, const Named& right, const Indices& result,
                   const Consumer& consumer);

}  // namespace cuop::pairwise
