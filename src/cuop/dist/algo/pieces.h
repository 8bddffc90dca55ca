// Internal: what of a distributed tensor the ranks need to change their own parts of another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// The destination of an assignment: its shape, the box of it that each rank has, and the index
/// that names it, for errors.
struct Target {
  Shape shape;
  std::vector<Box> boxes;
  std::string index = {};
};

/// Collective: work(piece) on every rank that has something of `to`; the piece is what of `value`
/// broadcasts to the rank's box. Before anything moves all ranks hear of an error of
/// check(a tensor of the value's dtype without elements) and of a ShapeError unless value
/// broadcasts to `to`, as of a DeviceError, or, inside a StrictScope, a GatherError.
void bring_pieces(const std::string& who, const DistTensor& x, const DistTensor& value,
                  const Target& to, const std::function<void(const Tensor&)>& check,
                  const std::function<void(const Tensor&)>& work);

}  // namespace cuop::dist
