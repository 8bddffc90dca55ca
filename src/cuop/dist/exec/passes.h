// Following the plan of a transform in passes.
#pragma once

#include <functional>

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// A pass as this rank meets it.
struct RankPass {
  size_t number = 0;  ///< from 0 on
  const std::vector<int>& axes;
  Box box;  ///< of what this rank makes
  /// The output: the axes of the pass are its fastest. A part that was brought to the pass lies so
  /// too; one that stays is read as it lies, with strides if need be, which was measured faster
  /// than strides on both sides.
  Tensor into;
};
/// The work of a pass on this rank's part. Not called where there is nothing to make.
using PassWork = std::function<void(const Tensor& part, const RankPass& pass)>;

/// x, brought to each pass of the plan and transformed there.
DistTensor follow_passes(const Plan& plan, const DistTensor& x, const PassWork& work);

}  // namespace cuop::dist
