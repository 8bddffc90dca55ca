#include "cuop/dist/exec/moved.h"

#include <utility>

namespace cuop::dist {
namespace {

/// x under another sharding, of which this rank has `local`.
DistTensor relaid(const DistTensor& x, const Sharding& sharding, Tensor local) {
  return DistTensor(x.comm_ptr(), sharding, x.shape(), x.dtype(), std::move(local), x.device());
}

}  // namespace

Part part_of(const DistTensor& x) { return {x.local(), x.box(), x.device()}; }

DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const AxisOrder& order) {
  if (x.sharding() == sharding) return x;
  return relaid(x, sharding,
                fetch(x.comm(), part_of(x), x.sharding().owner_boxes(x.shape()),
                      sharding.owner_boxes(x.shape()), x.dtype(), order));
}

DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const Wire& wire, int axis) {
  if (x.sharding() == sharding) return x;
  return relaid(x, sharding,
                fetch(x.comm(), part_of(x), x.sharding().owner_boxes(x.shape()),
                      sharding.owner_boxes(x.shape()), x.dtype(), Travel{wire, axis}));
}

}  // namespace cuop::dist
