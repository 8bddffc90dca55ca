// How the indices of a contraction are split over ranks, and which splits take the least time.
//
// Worked example: 4 ranks as a grid of 2 x 2, axes {i, k}: rank 1 has the first half of i and the
// second of k. Of a tensor jk it needs the second half along k and all of j; so does rank 3.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuop/core/contraction.h"
#include "cuop/core/slicing.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// Which index each axis of a mesh splits.
struct IndexLayout {
  std::shared_ptr<const Mesh> mesh = {};  ///< shared: planning copies layouts a great deal
  Indices axes = {};  ///< one for each axis of the mesh, -1 where it splits none
  int root = -1;      ///< all on this rank instead

  /// Of a tensor whose dimensions are called so; dimensions of size 1 are not split.
  Sharding sharding(const Indices& indices) const;
  /// What each rank has of it. An index that stands twice has the same interval in both dimensions.
  std::vector<Box> boxes(const Indices& indices, const Shape& shape) const;
  /// What each rank has of the part within these intervals of the indices, of which dimensions of
  /// size 1 have all.
  std::vector<Box> boxes(const Indices& indices, const Shape& shape,
                         const std::vector<Interval>& window) const;
  /// The same without what these indices lack.
  IndexLayout of(const Indices& indices) const;
  bool operator==(const IndexLayout& other) const;
};

struct EinsumTask {
  std::vector<Placement> inputs;  ///< where the operands lie
  std::vector<Indices> labels;    ///< what their dimensions are called
  Contraction contraction;
  std::vector<std::vector<ContractionStep>> orders;  ///< that may be followed
  std::vector<std::vector<PairForm>> forms;          ///< of each order's steps
  Indices output;                                    ///< what the result's dimensions are called
  Shape shape;                                       ///< of the result
  DType dtype = DType::kFloat32;                     ///< in which all is computed
  std::vector<std::string> names;                    ///< of the indices
  std::optional<Sharding> wanted;                    ///< where; none leaves it where it is made
  Slicing slicing;                                   ///< all steps are followed for each slice

  int ranks() const { return inputs.at(0).sharding.mesh().size(); }
};

/// Where a step works and where what it makes lies then.
struct StepLayout {
  IndexLayout work;
  IndexLayout made;
};

enum class LayoutChoice : uint8_t {
  kRoot,   ///< all on the rank where the operands lie
  kSplit,  ///< none there
  kAny,
};

/// For each step of an order the layouts by which all of them together take the least predicted
/// time of one slice: of each tensor up to 12 ways to lie are followed from step to step. Nothing
/// when a step needs more memory than there is in every layout.
std::optional<std::vector<StepLayout>> choose_layouts(const EinsumTask& task, size_t order,
                                                      const Machine& machine, LayoutChoice choice);

/// What one writes by hand: each step works on blocks of the first index of its result that can be
/// split, for which it has its operands in such blocks or, without that index, whole; what has none
/// is computed by all.
std::vector<StepLayout> naive_layouts(const EinsumTask& task, size_t order);

/// The arithmetic of a step on one rank, which has so many elements of these indices.
struct StepCost {
  double flops = 0;
  double efficiency = 1;    ///< of the machine's rate: products of matrices by their size
  double copied_bytes = 0;  ///< of what does not lie as matrices
};
using ElementsOf = std::function<double(const Indices&)>;
StepCost step_cost(const EinsumTask& task, size_t order, size_t step,
                   const std::vector<Indices>& tensors, const Machine& machine,
                   const ElementsOf& elements);
/// Of copies that bring rows to columns.
double copy_seconds(const Machine& machine, double bytes);

}  // namespace cuop::dist
