#include "cuop/dist/exec/redistribute.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"

namespace cuop::dist {

Part part_of(const DistTensor& x) { return {x.local(), x.box()}; }

DistTensor moved_to(const DistTensor& x, const Sharding& sharding) {
  if (x.sharding() == sharding) return x;
  Tensor local = fetch(x.comm(), part_of(x), x.sharding().owner_boxes(x.shape()),
                       sharding.owner_boxes(x.shape()), x.dtype());
  return DistTensor(x.comm_ptr(), sharding, x.shape(), x.dtype(), std::move(local));
}

DistTensor redistribute(const DistTensor& x, const Sharding& sharding) {
  const trace::Span span("redistribute", "op");
  DistTensor result;
  run_together(
      x.comm(), cat("redistribute ", x.to_string(), " -> ", sharding),
      [&] {
        if (sharding.mesh().size() != x.comm().size()) {
          throw ShapeError(cat("redistribute: ", sharding.mesh(), " is not a mesh of the ",
                               x.comm().size(), " ranks of the tensor"));
        }
        sharding.check_fits(x.shape(), "redistribute");
      },
      [&] { result = moved_to(x, sharding); });
  return result;
}

Tensor gather(const DistTensor& x, int root) {
  const DistTensor whole = redistribute(x, Sharding::on_rank(x.sharding().mesh(), root));
  return x.comm().rank() == root ? whole.local() : Tensor();
}

Tensor gather_all(const DistTensor& x) {
  return redistribute(x, Sharding::replicated(x.sharding().mesh())).local();
}

}  // namespace cuop::dist
